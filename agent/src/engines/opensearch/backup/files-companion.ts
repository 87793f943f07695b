import { extname, join } from "node:path";
import type { Companion, Instance } from "../../engine-driver.ts";
import { principalOf } from "../../member-certificates.ts";
import { certificatesOf, memberCountOf, portsOf, repositoryDirectory } from "../layout.ts";

/** The program: beside the agent in a bundle, in its folder in a checkout. */
const program =
  extname(import.meta.filename) === ".mjs"
    ? join(import.meta.dirname, "spool-files.mjs")
    : join(import.meta.dirname, "../../spool-files/main.ts");

/** Options that limit the memory of a program that mostly waits, as few arenas of the allocator do. */
const heapOptions = ["--max-semi-space-size=1"];

/** Serves this member's files of a snapshot to the member that stores it. */
export function filesCompanion(instance: Instance): Companion {
  const { party, membersAuthority } = certificatesOf(instance);
  return {
    name: "files",
    command: {
      argv: [process.execPath, ...heapOptions, program],
      env: {
        LC_ALL: "C",
        TZ: "UTC",
        MALLOC_ARENA_MAX: "2",
        FILES_ADDRESS: instance.spec.address,
        FILES_PORT: String(portsOf(instance).files),
        FILES_DIRECTORY: repositoryDirectory(instance),
        FILES_IDENTITY: party("server"),
        FILES_AUTHORITY: membersAuthority,
        FILES_CLIENT: principalOf("agent"),
      },
      cwd: "/",
    },
    stop: { signal: "SIGTERM", graceMs: 2_000 },
    isOptional: true,
    isEnabled: memberCountOf(instance) > 1,
  };
}
