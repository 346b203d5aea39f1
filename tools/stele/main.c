/* The driver: finds the subcommand in the table and hands over. */
#include <string.h>

#include "cli.h"

#define COMMAND(name, summary) extern const cli_command cli_command_##name;
#include "commands.def"
#undef COMMAND

static const cli_row commands[] = {
#define COMMAND(name, summary) {&cli_command_##name, summary},
#include "commands.def"
#undef COMMAND
};

const cli_row *cli_commands(size_t *out_count) {
  *out_count = sizeof commands / sizeof commands[0];
  return commands;
}

const cli_row *cli_command_find(const char *name) {
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
    if (strcmp(commands[i].command->name, name) == 0) return &commands[i];
  return NULL;
}

static int print_version(void) {
  printf("stele %s (artefact ABI %u, %s)\n", STELE_VERSION, STELE_ARTIFACT_ABI, STELE_CLI_BUILD);
  return cli_finish(NULL, CLI_OK);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    cli_help_program(stderr);
    return CLI_USAGE;
  }
  const char *name = argv[1];
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
    cli_help_program(stdout);
    return cli_finish(NULL, CLI_OK);
  }
  if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) return print_version();
  const cli_row *row = cli_command_find(name);
  if (!row)
    return cli_wrong_use(NULL, "unknown command '%s': expected one that 'stele --help' lists",
                         name);
  return row->command->run(row->command, argc - 1, argv + 1);
}
