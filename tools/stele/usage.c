/* --help: laid out from the same tables that parsing reads. */
#include <string.h>

#include "cli.h"

enum { COLUMN = 30, WIDTH = 96 };

void cli_option_text(const cli_option *option, char *buffer, size_t size) {
  char letter[8] = "    ";
  if (option->letter) snprintf(letter, sizeof letter, "-%c, ", option->letter);
  snprintf(buffer, size, "%s--%s%s%s", letter, option->name, option->value ? " " : "",
           option->value ? option->value : "");
}

/* Words of text from column on, broken at WIDTH. */
static void print_wrapped(FILE *stream, const char *text, size_t column, size_t at) {
  while (*text) {
    size_t length = strcspn(text, " \n");
    if (at > column && at + 1 + length > WIDTH) {
      fprintf(stream, "\n%*s", (int)column, "");
      at = column;
    } else if (at > column) {
      fputc(' ', stream);
      at++;
    }
    fwrite(text, 1, length, stream);
    at += length;
    text += length;
    if (*text == '\n') {
      fprintf(stream, "\n%*s", (int)column, "");
      at = column;
    }
    if (*text) text++;
  }
  fputc('\n', stream);
}

static void print_row(FILE *stream, const char *left, const char *text) {
  size_t length = strlen(left) + 2;
  fprintf(stream, "  %s", left);
  if (length + 2 > COLUMN) {
    fputc('\n', stream);
    length = 0;
  }
  fprintf(stream, "%*s", (int)(COLUMN - length), "");
  print_wrapped(stream, text, COLUMN, COLUMN);
}

void cli_help_program(FILE *stream) {
  size_t count;
  const cli_row *rows = cli_commands(&count);
  fputs(
      "usage: stele COMMAND [options]\n\n"
      "Carves a language model into one shared object, once, and generates text with it.\n\n"
      "commands:\n",
      stream);
  for (size_t i = 0; i < count; i++) print_row(stream, rows[i].command->name, rows[i].summary);
  fputs("\noptions:\n", stream);
  print_row(stream, "-h, --help", "show this help; 'stele COMMAND --help' shows a command's");
  print_row(stream, "-V, --version", "show the version");
  fputs(
      "\nexamples:\n"
      "  stele compile SmolLM2.gguf -o smol.so\n"
      "  stele run smol.so --prompt 'The capital of France is' --max-new-tokens 16\n",
      stream);
}

void cli_help_command(const cli_command *command, FILE *stream) {
  fprintf(stream, "usage: stele %s%s", command->name, command->operand ? " " : "");
  if (command->operand)
    fprintf(stream, command->operand_optional ? "[%s]" : "%s", command->operand);
  fprintf(stream, " %s\n\n", command->synopsis);
  print_wrapped(stream, command->description, 0, 0);
  fputs("\noptions:\n", stream);
  for (const cli_option *o = command->options; o && o->kind != CLI_END; o++) {
    char left[96];
    cli_option_text(o, left, sizeof left);
    print_row(stream, left, o->help);
  }
  print_row(stream, "-h, --help", "show this help");
  fputs("\nexamples:\n", stream);
  for (const char *line = command->examples; *line;) {
    size_t length = strcspn(line, "\n");
    fprintf(stream, "  %.*s\n", (int)length, line);
    line += length + (line[length] == '\n');
  }
}
