import { readFile } from "node:fs/promises";
import { systemClock } from "@holdfast/common/clock.ts";
import { readConfig } from "@holdfast/common/config.ts";
import { createLog } from "@holdfast/common/log.ts";
import { watchProcessFaults } from "@holdfast/common/process-faults.ts";
import { tdsSettings } from "./config.ts";
import { startTdsServer } from "./tds-server.ts";

const config = readConfig(tdsSettings, process.env);
const log = createLog("tds");
watchProcessFaults({ role: "server", logFault: log.error, monotonicMs: systemClock.monotonicMs });

const { host, port, socketDirectory, enginePort, database, certificateFile, keyFile } = config;
const readCertificate = () => Promise.all([readFile(certificateFile, "utf8"), readFile(keyFile, "utf8")]);

const [certificate, key] = await readCertificate();
const backend = { socketDirectory, port: enginePort, database };
const server = await startTdsServer({ host, port, backend, certificate, key, log });
log.info("tds ready", { host, port: server.port });

// The agent sends SIGHUP after a renewal of the certificate.
process.on("SIGHUP", () => {
  readCertificate().then(
    ([renewed, renewedKey]) => server.setCertificate(renewed, renewedKey),
    (error: unknown) => log.error("certificate not read", { error }),
  );
});
for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.once(signal, () => {
    server.close().catch((error: unknown) => log.error("tds did not close", { error }));
  });
}
