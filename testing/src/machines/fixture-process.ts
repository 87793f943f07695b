/**
 * A plain process that the fixture workload runs: it prints its message once a second, until SIGTERM. Its last argument
 * is the machine's directory, by which tests find it.
 */
const [message = ""] = process.argv.slice(2);

function writeLog(text: string): void {
  process.stdout.write(`${new Date().toISOString()} info ${text}\n`);
}

process.on("SIGTERM", () => {
  writeLog("shutting down");
  process.exit(0);
});
writeLog(message);
setInterval(() => writeLog(message), 1_000);
