import { readFileSync } from "node:fs";
import { systemClock } from "@holdfast/common/clock.ts";
import { createLog } from "@holdfast/common/log.ts";
import { watchProcessFaults } from "@holdfast/common/process-faults.ts";
import { runProgram } from "../../os/program.ts";
import { startFilesServer } from "./files-server.ts";
import { localFiles } from "./spool-files.ts";

/*
 * Program of an engine's companion that serves the files of a backup to another member. It runs as the engine's user.
 */
const log = createLog("files");
watchProcessFaults({ role: "server", logFault: log.error, monotonicMs: systemClock.monotonicMs });
const { FILES_ADDRESS: address = "", FILES_PORT: port = "", FILES_CLIENT: client = "" } = process.env;
const { FILES_IDENTITY: identity = "", FILES_AUTHORITY: authority = "", FILES_DIRECTORY: directory = "" } = process.env;
if ([address, port, client, directory].includes("")) throw new Error("the settings are incomplete");

const server = await startFilesServer({
  address,
  port: Number(port),
  identity: readFileSync(identity, "utf8"),
  authority: readFileSync(authority, "utf8"),
  client,
  files: localFiles(runProgram, directory),
});
for (const signal of ["SIGTERM", "SIGINT"] as const)
  process.once(signal, () => {
    server.close();
    server.closeAllConnections();
  });
