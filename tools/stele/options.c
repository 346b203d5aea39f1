/* Reads a command line by the command's table of options, through getopt_long. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { MAX_OPTIONS = 40, HELP_CODE = 1000, FIRST_CODE = 1001 };

bool cli_number(const char *text, uint32_t least, uint32_t most, uint32_t *out) {
  if (*text < '0' || *text > '9') return false; /* strtoul would take blanks and signs */
  char *end;
  errno = 0;
  unsigned long value = strtoul(text, &end, 10);
  if (errno || *end || value < least || value > most) return false;
  *out = (uint32_t)value;
  return true;
}

/* The position of text in "a|b|c". */
static bool find_choice(const char *choices, const char *text, uint32_t *out) {
  size_t length = strlen(text);
  uint32_t position = 0;
  for (const char *at = choices; at; position++) {
    size_t size = strcspn(at, "|");
    if (size == length && memcmp(at, text, size) == 0) {
      *out = position;
      return true;
    }
    at = at[size] ? at + size + 1 : NULL;
  }
  return false;
}

/* Adds the items between commas; they are pieces of argv, cut in place. */
static bool add_items(cli_list *list, char *text) {
  for (char *rest = text, *item; (item = strsep(&rest, ","));) {
    if (!*item) continue;
    if (list->count == CLI_LIST_MAX) return false;
    list->items[list->count++] = item;
  }
  return true;
}

static int store(const cli_command *command, const cli_option *option, char *text,
                 void *arguments) {
  void *field = (char *)arguments + option->offset;
  switch (option->kind) {
    case CLI_FLAG:
      *(bool *)field = true;
      break;
    case CLI_TEXT:
    case CLI_FILE:
      *(const char **)field = text;
      break;
    case CLI_COUNT:
      if (!cli_number(text, option->least, option->most, field))
        return cli_wrong_use(command, "--%s '%s': expected a whole number from %u to %u",
                             option->name, text, option->least, option->most);
      break;
    case CLI_CHOICE:
      if (!find_choice(option->choices, text, field))
        return cli_wrong_use(command, "--%s '%s': expected one of %s", option->name, text,
                             option->choices);
      break;
    case CLI_LIST:
      if (!add_items(field, text))
        return cli_wrong_use(command, "--%s: more than %u items", option->name, CLI_LIST_MAX);
      break;
    case CLI_END:
      break;
  }
  return CLI_OK;
}

/* getopt's two tables; returns the number of options. */
static int make_tables(const cli_command *command, struct option longs[MAX_OPTIONS + 2],
                       char letters[2 * MAX_OPTIONS + 4]) {
  int count = 0;
  char *letter = letters;
  *letter++ = ':'; /* tell a missing value from an unknown option */
  *letter++ = 'h';
  for (const cli_option *o = command->options; o && o->kind != CLI_END && count < MAX_OPTIONS;
       o++) {
    int has_value = o->kind == CLI_FLAG ? no_argument : required_argument;
    longs[count] = (struct option){o->name, has_value, NULL, FIRST_CODE + count};
    if (o->letter) {
      *letter++ = o->letter;
      if (has_value == required_argument) *letter++ = ':';
    }
    count++;
  }
  *letter = 0;
  longs[count] = (struct option){"help", no_argument, NULL, HELP_CODE};
  longs[count + 1] = (struct option){NULL, 0, NULL, 0};
  return count;
}

static const cli_option *option_of_code(const cli_command *command, int code, int count) {
  if (code >= FIRST_CODE && code < FIRST_CODE + count) return &command->options[code - FIRST_CODE];
  for (int i = 0; i < count; i++)
    if (command->options[i].letter && command->options[i].letter == code)
      return &command->options[i];
  return NULL;
}

static int bad_option(const cli_command *command, int code, int count, char **argv) {
  const cli_option *option = option_of_code(command, optopt, count);
  if (code == ':' && option) return cli_wrong_use(command, "--%s needs a value", option->name);
  if (option) return cli_wrong_use(command, "--%s takes no value", option->name);
  if (optopt && optopt < HELP_CODE) return cli_wrong_use(command, "unknown option '-%c'", optopt);
  return cli_wrong_use(command, "unknown or ambiguous option '%s'", argv[optind - 1]);
}

/* What is left after the options. */
static int take_operand(const cli_command *command, int argc, char **argv,
                        const char **out_operand) {
  int left = argc - optind;
  if (left > (command->operand ? 1 : 0))
    return cli_wrong_use(command, "unexpected argument '%s'",
                         argv[optind + (command->operand ? 1 : 0)]);
  if (!left && command->operand && !command->operand_optional)
    return cli_wrong_use(command, "%s is missing", command->operand);
  *out_operand = left ? argv[optind] : NULL;
  return CLI_OK;
}

bool cli_parse(const cli_command *command, int argc, char **argv, void *arguments,
               const char **out_operand, int *out_exit) {
  struct option longs[MAX_OPTIONS + 2];
  char letters[2 * MAX_OPTIONS + 4];
  int count = make_tables(command, longs, letters), code;
  opterr = 0;
  while ((code = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
    if (code == HELP_CODE || code == 'h') {
      cli_help_command(command, stdout);
      *out_exit = cli_finish(command, CLI_OK);
      return false;
    }
    if (code == '?' || code == ':')
      *out_exit = bad_option(command, code, count, argv);
    else
      *out_exit = store(command, option_of_code(command, code, count), optarg, arguments);
    if (*out_exit != CLI_OK) return false;
  }
  *out_exit = take_operand(command, argc, argv, out_operand);
  return *out_exit == CLI_OK;
}
