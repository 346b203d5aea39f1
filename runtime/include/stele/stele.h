/* libstele: opens an artefact and generates text with it.
 *
 *   stele_model    an opened artefact: code, mapped weights, tokenizer. Immutable; may be used
 *                  from several threads at once.
 *   stele_session  lanes with their caches and the tensors that grow. One thread at a time per
 *                  session; sessions of one model are independent.
 *
 * Every function that can fail returns a stele_status; outputs come last and are untouched on
 * failure; the message goes into the sink (NULL: not wanted). Nothing here prints, aborts or
 * exits. create/open give you an object that destroy/close ends; both accept NULL. */
#ifndef STELE_H
#define STELE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stele/artifact.h"
#include "stele/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define STELE_VERSION "0.1.0"

typedef struct stele_model stele_model;
typedef struct stele_session stele_session;
typedef struct stele_stream stele_stream;

/* ---- models ---------------------------------------------------------------------------- */

/* Zero-initialise, then set struct_bytes. */
typedef struct stele_model_options {
  uint32_t struct_bytes;
  uint64_t disable_features; /* bits of stele_feature that are treated as absent; the variable
                                STELE_DISABLE_FEATURES="avx512_vnni,avx2" adds to them */
} stele_model_options;

/* Opens and checks an artefact: trailer, sizes, header hash, version, processor. Weights are
 * mapped, not read. options may be NULL. */
STELE_API stele_status stele_model_open(const char *path, const stele_model_options *options,
                                        stele_sink *sink, stele_model **out_model) STELE_MUST_USE;
STELE_API void stele_model_close(stele_model *model);
/* What the artefact says of itself; lives as long as the model. */
STELE_API const stele_artifact *stele_model_artifact(const stele_model *model);
/* The variant that was chosen for this machine. */
STELE_API const stele_variant *stele_model_variant(const stele_model *model);
/* What a step of that variant consists of; its names are in the artefact's op_names. NULL when the
 * artefact does not say. */
STELE_API const stele_step_phases *stele_model_phases(const stele_model *model,
                                                      const stele_step *step);
/* Start and size of the mapped weights. */
STELE_API const uint8_t *stele_model_weights(const stele_model *model, uint64_t *out_bytes);
/* Reads the whole file and compares its hashes: slow. */
STELE_API stele_status stele_model_verify(const stele_model *model,
                                          stele_sink *sink) STELE_MUST_USE;
/* Processor features of this machine, bits of stele_feature; the name of one bit. */
STELE_API uint64_t stele_machine_features(void);
STELE_API const char *stele_feature_name(uint64_t bit);
/* Processors this process may use: affinity, cgroup quota, physical cores, at most
 * OMP_NUM_THREADS. At least 1. */
STELE_API uint32_t stele_machine_workers(void);

/* ---- sessions -------------------------------------------------------------------------- */

enum stele_cache_implementation { STELE_CACHE_DYNAMIC = 0, STELE_CACHE_STATIC = 1 };

typedef struct stele_session_options {
  uint32_t struct_bytes;
  uint32_t lanes;                /* [1] at most the artefact's */
  uint32_t threads;              /* [stele_machine_workers()] at most the artefact's max_workers */
  uint32_t cache_implementation; /* enum stele_cache_implementation */
  void *(*allocate)(void *allocate_data, size_t bytes); /* [malloc], for the session's own data */
  void (*release)(void *allocate_data, void *memory);
  void *allocate_data;
} stele_session_options;

/* Everything a session will need is sized here: no later call but reset of a larger cache
 * allocates. The model must outlive the session. options may be NULL. */
STELE_API stele_status stele_session_create(const stele_model *model,
                                            const stele_session_options *options, stele_sink *sink,
                                            stele_session **out_session) STELE_MUST_USE;
STELE_API void stele_session_destroy(stele_session *session);
/* Forgets all tokens of a lane; its pages return to the pool. */
STELE_API void stele_session_reset(stele_session *session, uint32_t lane);
/* Forgets the last count tokens of a lane: what comes next is as if they had never been fed. Pages
 * that hold no others return to the pool. STELE_INVALID_ARGUMENT, and nothing is forgotten, when
 * the lane has fewer. */
STELE_API stele_status stele_session_crop(stele_session *session, uint32_t lane, uint32_t count,
                                          stele_sink *sink) STELE_MUST_USE;
/* Tokens in a lane's cache. */
STELE_API uint32_t stele_session_length(const stele_session *session, uint32_t lane);
/* Bytes of cache in use by all lanes; a static cache is all in use. */
STELE_API uint64_t stele_session_cache_bytes(const stele_session *session);
STELE_API uint32_t stele_session_threads(const stele_session *session);

/* Feeds count ids to a lane. output chooses what is left behind:
 *   STELE_OUTPUT_NONE    nothing, out is NULL
 *   STELE_OUTPUT_TOKEN   out: int32_t, the most likely next id
 *   STELE_OUTPUT_LAST    out: float [vocab], logits after the last id
 *   STELE_OUTPUT_ALL     out: float [count][vocab]
 *   STELE_OUTPUT_HIDDEN  out: float [layers + 1][count][hidden]
 * STELE_CAPACITY, before anything is computed, when they do not fit. */
STELE_API stele_status stele_session_feed(stele_session *session, uint32_t lane, const int32_t *ids,
                                          uint32_t count, uint32_t output, void *out,
                                          stele_sink *sink) STELE_MUST_USE;
/* One decode step of several lanes at once: ids[i] goes to lanes[i] (all different). output is
 * TOKEN (out: int32_t [count]) or LAST (out: float [count][vocab]). */
STELE_API stele_status stele_session_step(stele_session *session, const uint32_t *lanes,
                                          const int32_t *ids, uint32_t count, uint32_t output,
                                          void *out, stele_sink *sink) STELE_MUST_USE;

/* When a worker came to a meeting and when it went on: nanoseconds of the monotonic clock. */
typedef struct stele_meeting {
  uint64_t arrived, left;
} stele_meeting;
/* Told after a step what its workers noted, [workers][count]: the begin of the step (both times
 * the same), every meeting in order, the end. A step of n phases makes count n + 1. */
typedef void (*stele_profile_function)(void *report_data, const stele_step *step,
                                       const stele_meeting *meetings, uint32_t workers,
                                       uint32_t count);
/* From now on each step is reported; NULL: no longer. What a step computes stays the same, it takes
 * a little longer. STELE_UNSUPPORTED when the artefact says nothing of phases. */
STELE_API stele_status stele_session_profile(stele_session *session, stele_profile_function report,
                                             void *report_data, stele_sink *sink) STELE_MUST_USE;

/* ---- generation ------------------------------------------------------------------------ */

enum stele_finish {
  STELE_FINISH_STOP = 0,
  STELE_FINISH_LENGTH = 1,
  STELE_FINISH_CANCELLED = 2,
  STELE_FINISH_TIME = 3
};
/* "stop", "length", "cancelled", "time". */
STELE_API const char *stele_finish_name(uint32_t finish);

typedef struct stele_generate_options {
  uint32_t struct_bytes;
  uint32_t lane;
  uint32_t max_new_tokens; /* 0: until a stop id or the capacity */
  bool ignore_eos;
  /* Called with each id as it is chosen; returning false cancels. NULL: not wanted. */
  bool (*on_token)(void *on_token_data, int32_t id);
  void *on_token_data;
  /* Ids that are guessed at a time, 0: none. They are what followed the last ids where these stood
   * before, in the prompt or in what was generated, and are checked in one verify step: the ids are
   * the same as without, only sooner where a text repeats itself. At most one less than the tokens
   * of the model's verify step count; STELE_UNSUPPORTED when it has none. */
  uint32_t prompt_lookup_num_tokens;
} stele_generate_options;

typedef struct stele_generate_result {
  uint32_t finish; /* enum stele_finish */
  uint32_t prompt_tokens, reused_tokens, generated_tokens;
  double prefill_seconds, decode_seconds;   /* decode: without the first token */
  uint32_t drafted_tokens, accepted_tokens; /* guessed; generated as guessed */
} stele_generate_result;

/* Greedy generation after a prompt (at least one id). Only prompt lookup asks for memory, before
 * the prompt is fed. ids go into out_ids, which has room for
 * limit of them; a final stop id is included. At capacity C a prompt of P ids yields at most
 * C - P + 1; a prompt above the capacity is STELE_CAPACITY. */
STELE_API stele_status stele_generate(stele_session *session, const int32_t *prompt,
                                      uint32_t prompt_count, const stele_generate_options *options,
                                      int32_t *out_ids, uint32_t limit, stele_sink *sink,
                                      stele_generate_result *out_result) STELE_MUST_USE;

/* ---- text (STELE_UNSUPPORTED when the library was built without) ------------------------ */

/* Ids of a text; special: add what the tokenizer adds by itself (a beginning of sequence). Added
 * tokens in the text are read as such either way. *out_ids is malloc'd. STELE_NOT_FOUND without a
 * tokenizer. */
STELE_API stele_status stele_tokenize(const stele_model *model, const char *text, size_t bytes,
                                      bool special, stele_sink *sink, int32_t **out_ids,
                                      size_t *out_count) STELE_MUST_USE;
/* Text of ids, malloc'd, zero-terminated; ill-formed UTF-8 becomes U+FFFD. */
STELE_API stele_status stele_detokenize(const stele_model *model, const int32_t *ids, size_t count,
                                        bool skip_special, stele_sink *sink, char **out_text,
                                        size_t *out_bytes) STELE_MUST_USE;

/* Turns ids into text piece by piece: only whole characters leave; the concatenation of all
 * pieces and the end's is what stele_detokenize gives. */
STELE_API stele_status stele_stream_create(const stele_model *model, bool skip_special,
                                           stele_sink *sink,
                                           stele_stream **out_stream) STELE_MUST_USE;
STELE_API void stele_stream_destroy(stele_stream *stream);
/* The piece, valid until the next call; may be empty. */
STELE_API stele_status stele_stream_put(stele_stream *stream, int32_t id, const char **out_text,
                                        size_t *out_bytes) STELE_MUST_USE;
STELE_API stele_status stele_stream_end(stele_stream *stream, const char **out_text,
                                        size_t *out_bytes) STELE_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
