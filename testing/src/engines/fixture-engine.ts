import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";

/**
 * A small server that the agent can run as an engine: `write` on its socket appends a line to its data. The parameter
 * `broken` prevents its start, `slow_start_ms` delays it, `slow_answer_ms` delays replies and `deaf` drops requests.
 * SIGHUP reloads all parameters but `at_start`, and copies the configuration to a file beside the data. `store` with
 * JSON sets parameters that are in no file.
 */
const [configFile = "", dataFile = "", tlsDir = ""] = process.argv.slice(2);
let config = read();
const atStart = config.parameters["at_start"];
let stored: Record<string, string> = {};

function read(): { address: string; port: number; parameters: Record<string, string> } {
  return JSON.parse(readFileSync(configFile, "utf8"));
}

function writeLog(level: string, message: string): void {
  process.stdout.write(`${new Date().toISOString()} ${level} ${message}\n`);
}

if (config.parameters["broken"] !== undefined) {
  writeLog("error", `parameter broken cannot be ${config.parameters["broken"]}`);
  process.exit(1);
}
readFileSync(`${tlsDir}/server.crt`);

process.on("SIGTERM", () => {
  writeLog("info", "shutting down");
  process.exit(0);
});
process.on("SIGHUP", () => {
  config = read();
  writeLog("info", "reloaded");
  writeFileSync(`${dataFile}.read`, readFileSync(configFile));
});

const server = createServer((socket) => {
  socket.on("error", () => socket.destroy());
  socket.on("data", (bytes) => {
    const request = bytes.toString("utf8").trim();
    const isStore = request.startsWith("store ");
    if (config.parameters["deaf"] !== undefined && !isStore) return;
    if (request === "write") appendFileSync(dataFile, "written\n");
    const certificate = readFileSync(`${tlsDir}/server.crt`, "utf8");
    if (isStore) stored = JSON.parse(request.slice("store ".length)) as Record<string, string>;
    const { at_start: _, ...live } = { ...config.parameters, ...stored };
    const parameters = atStart === undefined ? live : { ...live, at_start: atStart };
    const response = `${JSON.stringify({ pid: process.pid, parameters, certificate })}\n`;
    const delayMs = Number(live["slow_answer_ms"] ?? "0");
    if (delayMs === 0) return void socket.end(response);
    writeLog("info", `delays ${request}`);
    setTimeout(() => {
      socket.end(response);
      writeLog("info", `responds late to ${request}`);
    }, delayMs);
  });
});
const slowMs = Number(config.parameters["slow_start_ms"] ?? "0");
writeLog("info", "starting");
setTimeout(() => server.listen(config.port, config.address, () => writeLog("info", "ready")), slowMs);
