/* When workers meet: while a profile is on, a step runs with a barrier of its own, which notes the
 * time at which each worker arrives and the time at which it goes on, around the barrier that it
 * stands for. Without a profile nothing of this is on a step's way. */
#include <time.h>

#include "session/session.h"

#define LINE 128u /* two cache lines: workers' counters are kept apart */

typedef struct notes {
  uint32_t count; /* more than there is room for: not all were kept */
  char apart[LINE - sizeof(uint32_t)];
} notes;

struct session_profile {
  stele_profile_function report;
  void *report_data;
  stele_env env; /* the session's with the barrier exchanged */
  device_host *host;
  const stele_step *step;
  uint32_t workers, room;  /* meetings that a worker can note */
  notes *notes;            /* [workers] */
  stele_meeting *meetings; /* [workers][room], then moved together to [workers][count] */
};

static uint64_t now_nanoseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void note(session_profile *p, uint32_t worker, uint64_t arrived, uint64_t left) {
  uint32_t i = p->notes[worker].count++;
  if (i < p->room) p->meetings[(size_t)worker * p->room + i] = (stele_meeting){arrived, left};
}

static void meet(void *profile, uint32_t worker) {
  session_profile *p = profile;
  uint64_t arrived = now_nanoseconds();
  device_host_barrier(p->host, worker);
  note(p, worker, arrived, now_nanoseconds());
}

/* A step between two more notes. */
static void run(const stele_env *env, const stele_step_args *args, uint32_t worker,
                uint32_t workers) {
  session_profile *p = env->barrier_data;
  p->notes[worker].count = 0;
  uint64_t begin = now_nanoseconds();
  note(p, worker, begin, begin);
  p->step->run(env, args, worker, workers);
  uint64_t end = now_nanoseconds();
  note(p, worker, end, end);
}

void session_profile_run(stele_session *session, const stele_step *step) {
  session_profile *p = session->profile;
  p->step = step;
  device_host_run(session->host, run, &p->env, &session->args);
  uint32_t count = p->notes[0].count, kept = (uint32_t)base_min(count, p->room);
  for (size_t w = 1; w < p->workers; w++)
    for (size_t i = 0; i < kept; i++) p->meetings[w * kept + i] = p->meetings[w * p->room + i];
  p->report(p->report_data, step, p->meetings, p->workers, kept);
}

void session_profile_end(stele_session *session) {
  session_profile *p = session->profile;
  if (!p) return;
  base_release(&session->allocator, p->notes);
  base_release(&session->allocator, p->meetings);
  base_release(&session->allocator, p);
  session->profile = NULL;
}

/* Of the step with the most phases; one more, to tell too many meetings from all of them. */
static uint32_t find_room(const stele_session *s) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < s->variant->step_count; i++) {
    const stele_step_phases *phases = stele_model_phases(s->model, &s->variant->steps[i]);
    if (phases) most = (uint32_t)base_max(most, phases->phase_count);
  }
  return most ? most + 2 : 0;
}

stele_status stele_session_profile(stele_session *session, stele_profile_function report,
                                   void *report_data, stele_sink *sink) {
  session_profile_end(session);
  if (!report) return STELE_OK;
  uint32_t room = find_room(session);
  if (!room)
    return base_fail(sink, STELE_UNSUPPORTED,
                     "'%s' does not say what its steps consist of: compile it again",
                     session->model->path);
  const base_allocator *allocator = &session->allocator;
  session_profile *p = session->profile = base_allocate(allocator, 1, sizeof *p);
  if (p) {
    *p = (session_profile){.report = report,
                           .report_data = report_data,
                           .env = session->env,
                           .host = session->host,
                           .workers = session->threads,
                           .room = room};
    p->env.barrier = meet;
    p->env.barrier_data = p;
    p->notes = base_allocate(allocator, session->threads, sizeof *p->notes);
    p->meetings = base_allocate(allocator, (size_t)session->threads * room, sizeof *p->meetings);
  }
  if (p && p->notes && p->meetings) return STELE_OK;
  session_profile_end(session);
  return base_fail(sink, STELE_OUT_OF_MEMORY, "cannot profile the session: out of memory");
}
