import { systemClock } from "@holdfast/common/clock.ts";
import { readConfig } from "@holdfast/common/config.ts";
import { createLog } from "@holdfast/common/log.ts";
import { watchProcessFaults } from "@holdfast/common/process-faults.ts";
import { opMsgSettings } from "./config.ts";
import { startOpMsgServer } from "./opmsg-server.ts";
import { createAccesses } from "./session/accesses.ts";

const config = readConfig(opMsgSettings, process.env);
const log = createLog("opmsg");
watchProcessFaults({ role: "server", logFault: log.error, monotonicMs: systemClock.monotonicMs });

const { socket, statusSocket, writersSocket, readersSocket, connectionsMax, requestMemoryBytes, replyMemoryBytes } =
  config;
const { socketDirectory, enginePort: port, database, role } = config;
const namesIn = (list: string) => list.split(",");
const accesses = createAccesses({
  socketDirectory,
  port,
  database,
  role,
  writers: namesIn(config.writers),
  readers: namesIn(config.readers),
});
const server = await startOpMsgServer({
  socket,
  statusSocket,
  engineSockets: { readwrite: writersSocket, readonly: readersSocket },
  accesses,
  connectionsMax,
  requestMemoryBytes,
  replyMemoryBytes,
  replyWaitMs: 30_000,
  log,
});
log.info("opmsg ready", { socket });

/** Interval of checks of the users' access: how long a dropped user's connections remain. */
const checkMs = 1_000;
let isChecking = false;
const timer = setInterval(() => {
  if (isChecking) return;
  isChecking = true;
  server
    .endChanged()
    .catch((error: unknown) => log.warn("access not checked", { error }))
    .finally(() => {
      isChecking = false;
    });
}, checkMs);

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.once(signal, () => {
    clearInterval(timer);
    Promise.all([server.close(), accesses.close()]).catch((error: unknown) => {
      log.error("opmsg did not close", { error });
    });
  });
}
