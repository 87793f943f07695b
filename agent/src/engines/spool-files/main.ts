import { readFileSync } from "node:fs";
import { runProgram } from "../../os/program.ts";
import { startFilesServer } from "./files-server.ts";
import { localFiles } from "./spool-files.ts";

/*
 * Program of an engine's companion that serves the files of a backup to another member. It runs as the engine's user.
 */
function setting(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set`);
  return value;
}

const server = await startFilesServer({
  address: setting("FILES_ADDRESS"),
  port: Number(setting("FILES_PORT")),
  identity: readFileSync(setting("FILES_IDENTITY"), "utf8"),
  authority: readFileSync(setting("FILES_AUTHORITY"), "utf8"),
  client: setting("FILES_CLIENT"),
  files: localFiles(runProgram, setting("FILES_DIRECTORY")),
});
for (const signal of ["SIGTERM", "SIGINT"] as const)
  process.once(signal, () => {
    server.close();
    server.closeAllConnections();
  });
