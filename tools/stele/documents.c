/* Manual pages (man(7) macros) and completions for bash, zsh and fish, all made of the tables
 * that parsing reads, so that there is no second list of options. */
#include <ctype.h>
#include <string.h>

#include "cli.h"

/* ---- manual pages ----------------------------------------------------------------------- */

/* Text with the characters that roff reads as commands escaped. */
static void roff(FILE *stream, const char *text, size_t length) {
  for (size_t i = 0; i < length; i++) {
    char c = text[i];
    bool line_start = i == 0 || text[i - 1] == '\n';
    if (line_start && (c == '.' || c == '\'')) fputs("\\&", stream);
    if (c == '\\')
      fputs("\\e", stream);
    else if (c == '-')
      fputs("\\-", stream);
    else if (c == '\'')
      fputs("\\(aq", stream);
    else
      fputc(c, stream);
  }
}

static void roff_text(FILE *stream, const char *text) { roff(stream, text, strlen(text)); }

static void man_title(FILE *stream, const char *name, const char *summary) {
  fputs(".TH ", stream);
  for (const char *c = name; *c; c++) fputc(toupper((unsigned char)*c), stream);
  fprintf(stream, " 1 \"\" \"stele %s\" \"User Commands\"\n.SH NAME\n", STELE_VERSION);
  roff_text(stream, name);
  fputs(" \\- ", stream);
  roff_text(stream, summary);
  fputc('\n', stream);
}

static void man_option(FILE *stream, const cli_option *option) {
  char text[96];
  cli_option_text(option, text, sizeof text);
  fputs(".TP\n\\fB", stream);
  roff_text(stream, text + strspn(text, " "));
  fputs("\\fR\n", stream);
  roff_text(stream, option->help);
  fputc('\n', stream);
}

static void man_examples(FILE *stream, const char *lines) {
  fputs(".SH EXAMPLES\n.nf\n", stream);
  roff_text(stream, lines);
  if (lines[0] && lines[strlen(lines) - 1] != '\n') fputc('\n', stream);
  fputs(".fi\n", stream);
}

static void man_end(FILE *stream) {
  fputs(".SH EXIT STATUS\n0 on success, 1 on a failure, 2 on a wrong use.\n.SH SEE ALSO\n", stream);
  size_t count;
  const cli_row *rows = cli_commands(&count);
  fputs(".BR stele (1)", stream);
  for (size_t i = 0; i < count; i++)
    fprintf(stream, ",\n.BR stele\\-%s (1)", rows[i].command->name);
  fputc('\n', stream);
}

static void man_program(FILE *stream) {
  size_t count;
  const cli_row *rows = cli_commands(&count);
  man_title(stream, "stele", "carve a language model into one shared object and run it");
  fputs(
      ".SH SYNOPSIS\n.B stele\n.I COMMAND\n[options]\n.SH DESCRIPTION\n"
      "Compiles a text\\-generating model ahead of time into one shared object, which holds its\n"
      "code, weights and tokenizer, and generates text with it.\n.SH COMMANDS\n",
      stream);
  for (size_t i = 0; i < count; i++) {
    fprintf(stream, ".TP\n.BR stele\\-%s (1)\n", rows[i].command->name);
    roff_text(stream, rows[i].summary);
    fputc('\n', stream);
  }
  man_end(stream);
}

void cli_write_man(const cli_command *command, FILE *stream) {
  if (!command) {
    man_program(stream);
    return;
  }
  char name[64];
  snprintf(name, sizeof name, "stele-%s", command->name);
  man_title(stream, name, cli_command_find(command->name)->summary);
  fprintf(stream, ".SH SYNOPSIS\n.B stele %s\n", command->name);
  if (command->operand) {
    fputs(command->operand_optional ? "[" : "", stream);
    roff_text(stream, command->operand);
    fputs(command->operand_optional ? "]\n" : "\n", stream);
  }
  roff_text(stream, command->synopsis);
  fputs("\n.SH DESCRIPTION\n", stream);
  roff_text(stream, command->description);
  fputs("\n.SH OPTIONS\n", stream);
  for (const cli_option *o = command->options; o && o->kind != CLI_END; o++) man_option(stream, o);
  fputs(".TP\n\\fB\\-h, \\-\\-help\\fR\nshow a short help\n", stream);
  man_examples(stream, command->examples);
  man_end(stream);
}

/* ---- completions ------------------------------------------------------------------------ */

static void command_names(FILE *stream) {
  size_t count;
  const cli_row *rows = cli_commands(&count);
  for (size_t i = 0; i < count; i++) fprintf(stream, i ? " %s" : "%s", rows[i].command->name);
}

/* "a|b|c" with blanks instead of bars. */
static void choices(FILE *stream, const char *list) {
  for (const char *c = list; *c; c++) fputc(*c == '|' ? ' ' : *c, stream);
}

static void write_bash(FILE *stream) {
  size_t count;
  const cli_row *rows = cli_commands(&count);
  fputs(
      "# bash completion for stele\n_stele() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words= values=\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    COMPREPLY=($(compgen -W \"",
      stream);
  command_names(stream);
  fputs(" --help --version\" -- \"$cur\"))\n    return\n  fi\n  case ${COMP_WORDS[1]} in\n",
        stream);
  for (size_t i = 0; i < count; i++) {
    const cli_command *command = rows[i].command;
    fprintf(stream, "  %s)\n    words=\"", command->name);
    for (const cli_option *o = command->options; o && o->kind != CLI_END; o++)
      fprintf(stream, "--%s ", o->name);
    fputs("--help\"\n    case $prev in\n", stream);
    for (const cli_option *o = command->options; o && o->kind != CLI_END; o++) {
      if (!o->choices) continue;
      fprintf(stream, "    --%s) values=\"", o->name);
      choices(stream, o->choices);
      fputs("\" ;;\n", stream);
    }
    fputs("    esac ;;\n", stream);
  }
  fputs(
      "  esac\n"
      "  if [ -n \"$values\" ]; then\n    COMPREPLY=($(compgen -W \"$values\" -- \"$cur\"))\n"
      "  elif [[ $cur == -* ]]; then\n    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
      "  else\n    COMPREPLY=($(compgen -f -- \"$cur\"))\n  fi\n}\n"
      "complete -o filenames -F _stele stele\n",
      stream);
}

/* Help for one line of a completion: quotes and the characters that zsh gives a meaning go. */
static void plain(FILE *stream, const char *text) {
  for (const char *c = text; *c; c++) {
    if (*c == '\n') break;
    fputc(strchr("'[]:\"\\", *c) ? ' ' : *c, stream);
  }
}

static void zsh_option(FILE *stream, const cli_option *option) {
  fprintf(stream, "        '--%s[", option->name);
  plain(stream, option->help);
  fputc(']', stream);
  if (option->value) {
    fprintf(stream, ":%s:", option->value);
    if (option->choices) {
      fputc('(', stream);
      choices(stream, option->choices);
      fputc(')', stream);
    } else if (option->kind == CLI_FILE) {
      fputs("_files", stream);
    }
  }
  fputs("' \\\n", stream);
}

static void write_zsh(FILE *stream) {
  size_t count;
  const cli_row *rows = cli_commands(&count);
  fputs("#compdef stele\n_stele() {\n  local -a commands\n  commands=(\n", stream);
  for (size_t i = 0; i < count; i++) {
    fprintf(stream, "    '%s:", rows[i].command->name);
    plain(stream, rows[i].summary);
    fputs("'\n", stream);
  }
  fputs(
      "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
      "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n",
      stream);
  for (size_t i = 0; i < count; i++) {
    fprintf(stream, "    %s)\n      _arguments \\\n", rows[i].command->name);
    for (const cli_option *o = rows[i].command->options; o && o->kind != CLI_END; o++)
      zsh_option(stream, o);
    fputs("        '--help[show a short help]' \\\n        '*:file:_files' ;;\n", stream);
  }
  fputs("  esac\n}\n_stele \"$@\"\n", stream);
}

static void write_fish(FILE *stream) {
  size_t count;
  const cli_row *rows = cli_commands(&count);
  fputs("# fish completion for stele\n", stream);
  for (size_t i = 0; i < count; i++) {
    const char *name = rows[i].command->name;
    fprintf(stream, "complete -c stele -n __fish_use_subcommand -f -a %s -d '", name);
    plain(stream, rows[i].summary);
    fputs("'\n", stream);
    for (const cli_option *o = rows[i].command->options; o && o->kind != CLI_END; o++) {
      fprintf(stream, "complete -c stele -n '__fish_seen_subcommand_from %s' -l %s", name, o->name);
      if (o->letter) fprintf(stream, " -s %c", o->letter);
      if (o->value) fputs(o->kind == CLI_FILE ? " -r -F" : " -x", stream);
      if (o->choices) {
        fputs(" -a '", stream);
        choices(stream, o->choices);
        fputc('\'', stream);
      }
      fputs(" -d '", stream);
      plain(stream, o->help);
      fputs("'\n", stream);
    }
  }
}

bool cli_write_completion(const char *shell, FILE *stream) {
  if (strcmp(shell, "bash") == 0)
    write_bash(stream);
  else if (strcmp(shell, "zsh") == 0)
    write_zsh(stream);
  else if (strcmp(shell, "fish") == 0)
    write_fish(stream);
  else
    return false;
  return true;
}
