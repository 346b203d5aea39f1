/* stele help: help, and the manual pages and completions that installing puts in place. */
#include <string.h>

#include "cli.h"

typedef struct help_arguments {
  bool man;
  const char *completion;
} help_arguments;

static const cli_option options[] = {
    {CLI_FLAG, 0, "man", NULL, offsetof(help_arguments, man), 0, 0, NULL,
     "print the manual page instead"},
    {CLI_TEXT, 0, "completion", "SHELL", offsetof(help_arguments, completion), 0, 0,
     "bash|zsh|fish", "print completions for a shell: bash, zsh or fish"},
    {0},
};

static int run(const cli_command *self, int argc, char **argv) {
  help_arguments arguments = {0};
  const char *name;
  int code;
  if (!cli_parse(self, argc, argv, &arguments, &name, &code)) return code;
  const cli_row *row = name ? cli_command_find(name) : NULL;
  if (name && !row)
    return cli_wrong_use(self, "unknown command '%s': expected one that 'stele --help' lists",
                         name);
  if (arguments.completion) {
    if (!cli_write_completion(arguments.completion, stdout))
      return cli_wrong_use(self, "--completion '%s': expected one of bash, zsh, fish",
                           arguments.completion);
  } else if (arguments.man) {
    cli_write_man(row ? row->command : NULL, stdout);
  } else if (row) {
    cli_help_command(row->command, stdout);
  } else {
    cli_help_program(stdout);
  }
  return cli_finish(self, CLI_OK);
}

const cli_command cli_command_help = {
    .name = "help",
    .operand = "COMMAND",
    .operand_optional = true,
    .synopsis = "[--man | --completion SHELL]",
    .description =
        "Shows the help of a command or of the program. Installed manual pages and "
        "completions are made with it.",
    .examples =
        "stele help run\n"
        "stele help --man compile | man -l -\n"
        "# completions for this shell\n"
        "source <(stele help --completion bash)\n",
    .options = options,
    .run = run,
};
