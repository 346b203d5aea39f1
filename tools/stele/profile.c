/* stele bench --profile: where a step's time goes. The session reports when every worker came to
 * every meeting; what lies between two meetings is a phase, and the artefact says which ops are in
 * it and what they read. A phase lasts from the last arrival at one meeting to the last arrival at
 * the next; a worker that came earlier waited for the rest. Phases of the same ops on weights of
 * the same class make one line. Every number is the median of all samples: a sample is a decode
 * step, or the steps of one prompt. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { MAX_LINES = 128, LABEL = 240 };

typedef struct profile_line {
  char label[LABEL];
  uint32_t calls;     /* phases in a sample */
  double bytes;       /* weights and cache, of all samples */
  double nanoseconds; /* median */
  double *waits;      /* [workers] medians */
} profile_line;

/* The lines of the phases of one kind of step. */
typedef struct phase_map {
  const stele_step *step;
  const stele_step_phases *phases;
  uint16_t *lines; /* [phase_count] */
  double *weights; /* [phase_count] bytes */
} phase_map;

typedef struct profile {
  const bench_state *state;
  uint32_t workers, stride; /* numbers of a line in a sample: its time, then each worker's wait */
  profile_line lines[MAX_LINES];
  uint32_t line_count;
  phase_map *maps; /* [step_count of the variant] */
  double *samples; /* [room][MAX_LINES][stride] */
  double *outside; /* [room] what a sample took beside its steps */
  double *pass;    /* [room] mean time from a meeting's last arrival to its last departure */
  size_t count, room;
  double in_steps, passing;  /* of the sample at hand */
  uint32_t meetings, slots;  /* the same; slots in the cache when the next step begins */
  const stele_step *strange; /* a step that met otherwise than its table says */
  uint32_t strange_count;
  bool failed; /* no memory */
} profile;

/* ---- names ------------------------------------------------------------------------------ */

/* "model.layers.3.mlp.up_proj.weight" is called up_proj. */
static void append_weight(char *label, const char *name) {
  size_t length = strlen(name);
  static const char suffix[] = ".weight";
  if (length > sizeof suffix && strcmp(name + length - (sizeof suffix - 1), suffix) == 0)
    length -= sizeof suffix - 1;
  const char *begin = name;
  for (size_t i = 0; i < length; i++)
    if (name[i] == '.' && i + 1 < length && !isdigit((unsigned char)name[i + 1]))
      begin = name + i + 1;
  size_t used = strlen(label);
  snprintf(label + used, LABEL - used, " %.*s", (int)(length - (size_t)(begin - name)), begin);
}

/* The ops of a phase, joined by " + ". */
static void make_label(const stele_artifact *a, const stele_step_phases *phases, uint32_t phase,
                       char label[LABEL]) {
  label[0] = 0;
  for (uint32_t i = 0; i < phases->op_count; i++) {
    const stele_phase_op *op = &phases->ops[i];
    if (op->phase != phase) continue;
    size_t used = strlen(label);
    snprintf(label + used, LABEL - used, "%s%s", used ? " + " : "", a->op_names[op->name]);
    for (int w = 0; w < 3; w++)
      if (op->weight[w] >= 0) append_weight(label, a->weights[op->weight[w]].name);
  }
}

static uint16_t find_line(profile *p, const char *label) {
  uint16_t i = 0;
  while (i < p->line_count && strcmp(p->lines[i].label, label) != 0) i++;
  if (i == MAX_LINES) return MAX_LINES - 1; /* the last one takes the rest */
  if (i == p->line_count) {
    snprintf(p->lines[i].label, LABEL, "%s", label);
    p->line_count++;
  }
  return i;
}

/* ---- taking samples --------------------------------------------------------------------- */

static bool make_map(profile *p, phase_map *map, const stele_step *step) {
  const stele_step_phases *phases = stele_model_phases(p->state->model, step);
  uint32_t count = phases ? phases->phase_count : 0;
  map->lines = calloc(count + 1u, sizeof *map->lines);
  map->weights = calloc(count + 1u, sizeof *map->weights);
  if (!phases || !map->lines || !map->weights) return false;
  for (uint32_t i = 0; i < count; i++) {
    char label[LABEL];
    make_label(stele_model_artifact(p->state->model), phases, i, label);
    map->lines[i] = find_line(p, label);
  }
  for (uint32_t i = 0; i < phases->op_count; i++)
    map->weights[phases->ops[i].phase] += (double)phases->ops[i].weight_bytes;
  map->step = step;
  map->phases = phases;
  return true;
}

static const phase_map *map_of(profile *p, const stele_step *step) {
  const stele_variant *variant = stele_model_variant(p->state->model);
  phase_map *map = &p->maps[step - variant->steps];
  if (!map->step && !make_map(p, map, step)) p->failed = true;
  return p->failed ? NULL : map;
}

/* Keys and values that a step reads when it ends with so many slots. */
static void add_cache_bytes(profile *p, const phase_map *map, uint32_t slots) {
  const stele_artifact *a = stele_model_artifact(p->state->model);
  for (uint32_t i = 0; i < map->phases->op_count; i++) {
    const stele_phase_op *op = &map->phases->ops[i];
    if (op->group < 0) continue;
    const stele_group *g = &a->groups[op->group];
    if (g->page_tokens)
      p->lines[map->lines[op->phase]].bytes +=
          (double)g->page_bytes / g->page_tokens * stele_group_seen(g, slots);
  }
}

static uint64_t last_arrival(const stele_meeting *meetings, uint32_t workers, uint32_t count,
                             uint32_t i) {
  uint64_t last = 0;
  for (uint32_t w = 0; w < workers; w++)
    last = base_max(last, meetings[(size_t)w * count + i].arrived);
  return last;
}

/* A step begins when the first worker does. */
static uint64_t first_arrival(const stele_meeting *meetings, uint32_t workers, uint32_t count) {
  uint64_t first = UINT64_MAX;
  for (uint32_t w = 0; w < workers; w++)
    first = base_min(first, meetings[(size_t)w * count].arrived);
  return first;
}

static void add_pass(profile *p, const stele_meeting *meetings, uint32_t count, uint32_t i,
                     uint64_t met) {
  uint64_t left = met;
  for (uint32_t w = 0; w < p->workers; w++)
    left = base_max(left, meetings[(size_t)w * count + i].left);
  p->passing += (double)(left - met);
  p->meetings++;
}

static void report(void *data, const stele_step *step, const stele_meeting *meetings,
                   uint32_t workers, uint32_t count) {
  profile *p = data;
  const phase_map *map = map_of(p, step);
  if (!map) return;
  if (count != map->phases->phase_count + 1) {
    p->strange = step;
    p->strange_count = count;
    return;
  }
  double *sample = p->samples + p->count * MAX_LINES * p->stride;
  uint64_t begin = first_arrival(meetings, workers, count), before = begin;
  for (uint32_t i = 1; i < count; i++) {
    profile_line *l = &p->lines[map->lines[i - 1]];
    double *numbers = sample + map->lines[i - 1] * p->stride;
    uint64_t met = last_arrival(meetings, workers, count, i);
    numbers[0] += (double)(met - before);
    for (uint32_t w = 0; w < workers; w++)
      numbers[1 + w] += (double)(met - meetings[(size_t)w * count + i].arrived);
    if (i + 1 < count) add_pass(p, meetings, count, i, met);
    if (p->count == 0) l->calls++;
    l->bytes += map->weights[i - 1];
    before = met;
  }
  p->in_steps += (double)(before - begin);
  p->slots += step->width;
  add_cache_bytes(p, map, p->slots);
}

static bool more_room(profile *p) {
  if (p->count < p->room) return true;
  size_t room = p->room ? 2 * p->room : 64, numbers = (size_t)MAX_LINES * p->stride;
  double *samples = realloc(p->samples, room * numbers * sizeof *samples);
  if (samples) p->samples = samples;
  double *outside = realloc(p->outside, room * sizeof *outside);
  if (outside) p->outside = outside;
  double *pass = realloc(p->pass, room * sizeof *pass);
  if (pass) p->pass = pass;
  if (!samples || !outside || !pass) return false;
  memset(p->samples + p->room * numbers, 0, (room - p->room) * numbers * sizeof *samples);
  p->room = room;
  return true;
}

static stele_status run_sample(profile *p, const int32_t *ids, uint32_t count, int32_t *out_next,
                               stele_sink *sink) {
  static const uint32_t lane = 0;
  stele_session *session = p->state->session;
  if (!more_room(p)) return STELE_OUT_OF_MEMORY;
  p->in_steps = p->passing = 0;
  p->meetings = 0;
  p->slots = stele_session_length(session, 0);
  double begin = cli_seconds();
  stele_status status =
      count > 1 ? stele_session_feed(session, 0, ids, count, STELE_OUTPUT_TOKEN, out_next, sink)
                : stele_session_step(session, &lane, ids, 1, STELE_OUTPUT_TOKEN, out_next, sink);
  double outside = (cli_seconds() - begin) * 1e9 - p->in_steps;
  p->outside[p->count] = outside > 0 ? outside : 0;
  p->pass[p->count] = p->meetings ? p->passing / p->meetings : 0;
  p->count++;
  return p->failed ? STELE_OUT_OF_MEMORY : status;
}

/* One repetition: a prompt of so many tokens, or so many steps. */
static stele_status run_round(profile *p, bench_state *state, uint32_t prompt, uint32_t tokens,
                              stele_sink *sink) {
  int32_t next = state->ids[0];
  BASE_TRY(bench_fill(state, sink));
  BASE_TRY(stele_session_profile(state->session, report, p, sink));
  stele_status status = STELE_OK;
  if (prompt) status = run_sample(p, state->ids, prompt, &next, sink);
  for (uint32_t i = 0; i < tokens && status == STELE_OK; i++)
    status = run_sample(p, &next, 1, &next, sink);
  stele_status off = stele_session_profile(state->session, NULL, NULL, sink);
  return status == STELE_OK ? off : status;
}

/* The first repetition warms up. */
static stele_status take_samples(profile *p, bench_state *state, uint32_t prompt, uint32_t tokens,
                                 stele_sink *sink) {
  for (uint32_t i = 0; i <= state->arguments->repetitions; i++) {
    if (i == 1) {
      memset(p->samples, 0, p->room * MAX_LINES * p->stride * sizeof *p->samples);
      for (uint32_t l = 0; l < p->line_count; l++) p->lines[l].calls = 0, p->lines[l].bytes = 0;
      p->count = 0;
    }
    BASE_TRY(run_round(p, state, prompt, tokens, sink));
  }
  return STELE_OK;
}

/* ---- what it comes to ------------------------------------------------------------------- */

static double median_of(const profile *p, uint32_t l, uint32_t number, double *space) {
  for (size_t i = 0; i < p->count; i++)
    space[i] = p->samples[(i * MAX_LINES + l) * p->stride + number];
  return bench_median(space, p->count);
}

static bool reduce(profile *p) {
  double *space = malloc((p->count + 1) * sizeof *space);
  bool good = space != NULL;
  for (uint32_t l = 0; l < p->line_count && good; l++) {
    profile_line *line = &p->lines[l];
    good = (line->waits = calloc(p->workers, sizeof *line->waits)) != NULL;
    if (!good) break;
    line->nanoseconds = median_of(p, l, 0, space);
    line->bytes /= (double)p->count;
    for (uint32_t w = 0; w < p->workers; w++) line->waits[w] = median_of(p, l, 1 + w, space);
  }
  free(space);
  return good;
}

static int by_time(const void *a, const void *b) {
  double x = ((const profile_line *)a)->nanoseconds, y = ((const profile_line *)b)->nanoseconds;
  return (x < y) - (x > y);
}

static double sum_of(const profile *p, bool bytes) {
  double sum = 0;
  for (uint32_t l = 0; l < p->line_count; l++)
    sum += bytes ? p->lines[l].bytes : p->lines[l].nanoseconds;
  return sum;
}

static json_t *lines_json(const profile *p, double total) {
  json_t *list = json_array();
  for (uint32_t l = 0; l < p->line_count; l++) {
    const profile_line *line = &p->lines[l];
    json_t *waits = json_array();
    for (uint32_t w = 0; w < p->workers; w++)
      json_array_append_new(waits, json_real(line->waits[w] / 1e3));
    json_array_append_new(
        list,
        json_pack("{s:s,s:I,s:f,s:f,s:f,s:f,s:o}", "ops", line->label, "calls",
                  (json_int_t)line->calls, "us", line->nanoseconds / 1e3, "share",
                  total > 0 ? line->nanoseconds / total : 0.0, "bytes", line->bytes, "gb_per_s",
                  line->nanoseconds > 0 ? line->bytes / line->nanoseconds : 0.0, "wait_us", waits));
  }
  return list;
}

static json_t *profile_json(profile *p, const char *name) {
  double total = sum_of(p, false);
  return json_pack("{s:s,s:I,s:I,s:I,s:f,s:f,s:f,s:I,s:f,s:f,s:o}", "test", name, "threads",
                   (json_int_t)p->workers, "depth", (json_int_t)p->state->arguments->depth,
                   "samples", (json_int_t)p->count, "us", total / 1e3, "outside_us",
                   bench_median(p->outside, p->count) / 1e3, "bytes", sum_of(p, true), "meetings",
                   (json_int_t)p->meetings, "meeting_us", bench_median(p->pass, p->count) / 1e3,
                   "read_gb_per_s", p->state->read_bytes_per_second / 1e9, "lines",
                   lines_json(p, total));
}

static void print_waits(const json_t *waits) {
  size_t i;
  json_t *wait;
  json_array_foreach(waits, i, wait) printf(" %6.1f", json_real_value(wait));
}

static void print_row(double us, double total, json_int_t calls, double bytes) {
  printf("%10.1f %5.1f %% %5" JSON_INTEGER_FORMAT " %9.2f", us, 100 * us / total, calls,
         bytes / 1e6);
  if (bytes > 0 && us > 0)
    printf(" %7.2f", bytes / us / 1e3);
  else
    printf(" %7s", "");
}

static double number_of(const json_t *object, const char *key) {
  return json_number_value(json_object_get(object, key));
}

static void print_profile(const json_t *p) {
  double total = number_of(p, "us");
  printf("%s @ d%.0f, %.0f threads, median of %.0f; memory reads %.2f GB/s\n",
         json_string_value(json_object_get(p, "test")), number_of(p, "depth"),
         number_of(p, "threads"), number_of(p, "samples"), number_of(p, "read_gb_per_s"));
  printf("%10s %7s %5s %9s %7s %s\n", "us", "share", "calls", "MB", "GB/s",
         "waiting of each worker, us; ops between two meetings");
  size_t i;
  const json_t *lines = json_object_get(p, "lines");
  json_t *row;
  json_array_foreach(lines, i, row) {
    print_row(number_of(row, "us"), total, json_integer_value(json_object_get(row, "calls")),
              number_of(row, "bytes"));
    print_waits(json_object_get(row, "wait_us"));
    printf("  %s\n", json_string_value(json_object_get(row, "ops")));
  }
  print_row(total, total, 1, number_of(p, "bytes"));
  printf("  in all; %.0f meetings, passed in %.2f us each; %.1f us outside of steps\n",
         number_of(p, "meetings"), number_of(p, "meeting_us"), number_of(p, "outside_us"));
}

/* ---- one test --------------------------------------------------------------------------- */

static void deinit(profile *p) {
  uint32_t steps = stele_model_variant(p->state->model)->step_count;
  for (uint32_t i = 0; p->maps && i < steps; i++) {
    free(p->maps[i].lines);
    free(p->maps[i].weights);
  }
  for (uint32_t l = 0; l < p->line_count; l++) free(p->lines[l].waits);
  free(p->maps);
  free(p->samples);
  free(p->outside);
  free(p->pass);
  free(p);
}

static int finish(profile *p, stele_status status, const stele_sink *sink, const char *name,
                  json_t *list) {
  const cli_command *self = p->state->self;
  if (p->failed || status == STELE_OUT_OF_MEMORY) return cli_fail(self, "out of memory");
  if (status != STELE_OK) return cli_status(self, status, sink);
  if (p->strange)
    return cli_fail(self,
                    "the workers of a step met %u times, %u were expected: its target can't be "
                    "profiled",
                    p->strange_count - 2, map_of(p, p->strange)->phases->phase_count - 1);
  if (!reduce(p)) return cli_fail(self, "out of memory");
  qsort(p->lines, p->line_count, sizeof *p->lines, by_time);
  json_t *made = profile_json(p, name);
  if (!made) return cli_fail(self, "cannot show a profile: a name in it is not UTF-8");
  if (!p->state->arguments->json) print_profile(made);
  json_array_append_new(list, made);
  return CLI_OK;
}

static int profile_test(bench_state *state, uint32_t prompt, uint32_t tokens, json_t *list) {
  char name[24];
  snprintf(name, sizeof name, prompt ? "pp%u" : "tg%u", prompt ? prompt : tokens);
  profile *p = calloc(1, sizeof *p);
  if (!p) return cli_fail(state->self, "out of memory");
  p->state = state;
  p->workers = stele_session_threads(state->session);
  p->stride = 1 + p->workers;
  p->maps = calloc(stele_model_variant(state->model)->step_count, sizeof *p->maps);
  stele_sink sink = {0};
  stele_status status =
      p->maps ? take_samples(p, state, prompt, tokens, &sink) : STELE_OUT_OF_MEMORY;
  int code = finish(p, status, &sink, name, list);
  deinit(p);
  return code;
}

int bench_profile(bench_state *state, uint32_t prompt, uint32_t tokens) {
  state->read_bytes_per_second =
      cli_read_bandwidth(state->read_bytes, stele_session_threads(state->session));
  json_t *list = json_array();
  int code = CLI_OK;
  if (prompt) code = profile_test(state, prompt, 0, list);
  if (tokens && code == CLI_OK) code = profile_test(state, 0, tokens, list);
  if (code == CLI_OK && state->arguments->json)
    return cli_json_print(state->self, json_pack("{s:o}", "profiles", list));
  json_decref(list);
  return code == CLI_OK ? cli_finish(state->self, CLI_OK) : code;
}
