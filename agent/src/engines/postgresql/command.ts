import type { EngineCommand, Instance } from "../engine-driver.ts";
import { dataDirectory, program } from "./layout.ts";

/** The postmaster in the foreground; everything it prints goes to standard error. */
export function command(instance: Instance): EngineCommand {
  const directory = dataDirectory(instance);
  const configuration = `config_file=${instance.paths.config}/postgresql.conf`;
  return {
    argv: [program(instance, "postgres"), "-D", directory, "-c", configuration],
    env: { LC_ALL: "C", TZ: "UTC" },
    cwd: directory,
  };
}
