import type { EngineCommand, Instance } from "../engine-driver.ts";
import { dataDirectory, program } from "./layout.ts";
import { keyFiles } from "./own-key.ts";

/** The postmaster in the foreground; everything it prints goes to standard error. */
export function command(instance: Instance): EngineCommand {
  const directory = dataDirectory(instance);
  const configuration = `config_file=${instance.paths.config}/postgresql.conf`;
  return {
    argv: [...withOwnKey(instance), program(instance, "postgres"), "-D", directory, "-c", configuration],
    // Out of memory it is a session that the kernel ends rather than the postmaster, which then recovers by itself.
    env: { LC_ALL: "C", TZ: "UTC", PG_OOM_ADJUST_FILE: "/proc/self/oom_score_adj", PG_OOM_ADJUST_VALUE: "400" },
    cwd: directory,
  };
}

/** The words before the program's: it has its key when it begins. */
function withOwnKey(instance: Instance): string[] {
  const { key, copy } = keyFiles(instance);
  return ["/bin/sh", "-c", 'install -m 600 -p "$0" "$1" && shift && exec "$@"', key, copy];
}
