import { watchFile } from "node:fs";
import { readFile } from "node:fs/promises";
import { systemClock } from "@holdfast/common/clock.ts";
import { readConfig } from "@holdfast/common/config.ts";
import { createLog } from "@holdfast/common/log.ts";
import { watchProcessFaults } from "@holdfast/common/process-faults.ts";
import { tdsSettings } from "./config.ts";
import { findCollation } from "./types/collation.ts";
import { startTdsServer } from "./tds-server.ts";

const config = readConfig(tdsSettings, process.env);
const log = createLog("tds");
watchProcessFaults({ role: "server", logFault: log.error, monotonicMs: systemClock.monotonicMs });

const { socket, usageSocket, connectionsMax, socketDirectory, enginePort, database, certificateFile, keyFile } = config;
const layoutMode = config.layoutMode === "multi-db" ? "multi-db" : "single-db";
const readCertificate = () => Promise.all([readFile(certificateFile, "utf8"), readFile(keyFile, "utf8")]);

const [certificate, key] = await readCertificate();
const collation = findCollation(config.serverCollation);
if (collation === undefined) throw new Error(`TDS_SERVER_COLLATION is no collation: ${config.serverCollation}`);
const backend = { socketDirectory, port: enginePort, database, layoutMode, collation } as const;
const server = await startTdsServer({
  at: { path: socket },
  usageAt: usageSocket,
  connectionsMax,
  backend,
  certificate,
  key,
  log,
});
log.info("tds ready", { socket });

const renewalPollMs = 1_000;

/** Certificate and key are replaced one after the other, so a pair that does not match is read again. */
async function renewCertificate(): Promise<void> {
  server.setCertificate(...(await readCertificate()));
}
// Polled, since the agent replaces the directory of the files.
for (const file of [certificateFile, keyFile]) {
  watchFile(file, { interval: renewalPollMs, persistent: false }, () => {
    renewCertificate().catch((error: unknown) => log.error("certificate not renewed", { error }));
  });
}
// The polls begin before this read, so no replacement since the first read is missed.
await renewCertificate();

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.once(signal, () => {
    server.close().catch((error: unknown) => log.error("tds did not close", { error }));
  });
}
