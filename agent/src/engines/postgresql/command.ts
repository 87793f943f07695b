import type { EngineCommand, Instance } from "../engine-driver.ts";
import { dataDirectory, program } from "./layout.ts";
import { keyFiles, withOwnKey } from "./own-key.ts";
import { sessionMemoryBytes, withMemory } from "./session-memory.ts";

/** The postmaster in the foreground; everything it prints goes to standard error. */
export function command(instance: Instance): EngineCommand {
  const directory = dataDirectory(instance);
  const configuration = `config_file=${instance.paths.config}/postgresql.conf`;
  const before = [...withOwnKey(keyFiles(instance)), ...withMemory(sessionMemoryBytes(instance))];
  return {
    argv: [...before, program(instance, "postgres"), "-D", directory, "-c", configuration],
    // Out of memory it is a session that the kernel ends rather than the postmaster, which then recovers by itself.
    env: { LC_ALL: "C", TZ: "UTC", PG_OOM_ADJUST_FILE: "/proc/self/oom_score_adj", PG_OOM_ADJUST_VALUE: "400" },
    cwd: directory,
  };
}
