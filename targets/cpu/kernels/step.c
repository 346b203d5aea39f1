/* What a step does between its ops. Called, not inlined: one copy serves all steps. */
#include "call.h"

void cpu_meet(const stele_env *env, uint32_t worker);
void cpu_layer_hook(const stele_env *env, uint32_t worker, uint32_t layer, uint32_t end);

__attribute__((noinline)) void cpu_meet(const stele_env *env, uint32_t worker) {
  if (env->barrier) env->barrier(env->barrier_data, worker);
}

/* The hook moves a layer's pages about, so nobody may be at work on them when it is called. */
__attribute__((noinline)) void cpu_layer_hook(const stele_env *env, uint32_t worker, uint32_t layer,
                                              uint32_t end) {
  if (!env->layer_hook) return;
  cpu_meet(env, worker);
  if (worker == 0) env->layer_hook(env->hook_data, layer, end);
  cpu_meet(env, worker);
}
