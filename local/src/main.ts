import { watchProcessFaults } from "@holdfast/common/process-faults.ts";
import { confirmAt } from "./clean-confirmation.ts";
import { clean } from "./clean.ts";
import { dnsUsage, runDnsCommand } from "./dns-command.ts";
import { stopForHandover } from "./handover.ts";
import { hostDeps } from "./host-deps.ts";
import { hostUsage, readHostOptions } from "./host-options.ts";
import { installUsage, isInstallCommand, runInstallCommand } from "./installed/install-command.ts";
import { readOptions, usage } from "./options.ts";
import { runHost } from "./run-host.ts";
import { up } from "./up.ts";
import { UsageError, UserError } from "./user-error.ts";

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => stop.abort());
// systemd starts the next supervisor, such as one of another release.
process.on("SIGUSR2", () => stopForHandover(stop));
// The launcher has the other end of the channel: without it, nothing could stop this process.
process.on("disconnect", () => stop.abort());

const deps = hostDeps();

/** Logs unexpected errors instead of exiting: the installation's processes are children of this process. */
function supervise(): void {
  watchProcessFaults({
    role: "supervisor",
    logFault: (message, { error }) => deps.print(`${message}: ${error instanceof Error ? error.stack : String(error)}`),
    monotonicMs: deps.clock.monotonicMs,
  });
}

function usageOf(command: string | undefined): string {
  if (isInstallCommand(command)) return installUsage;
  return command === "host" ? hostUsage : command === "dns" ? dnsUsage : usage;
}

try {
  // `npm start -- host` arrives as `up host`.
  const [first, ...rest] = process.argv.slice(2);
  const args = first === "up" && rest[0] === "host" ? rest : [first ?? "", ...rest];
  if (args.some((word) => word === "--help" || word === "-h")) {
    process.stdout.write(`${usageOf(args[0])}\n`);
  } else if (args[0] === "dns") {
    await runDnsCommand(args.slice(1), deps);
  } else if (isInstallCommand(args[0])) {
    await runInstallCommand(args, deps);
  } else if (args[0] === "host") {
    supervise();
    await runHost(readHostOptions(args.slice(1), process.env, deps.checkout), deps, stop.signal);
  } else {
    const options = readOptions(args, process.env, deps.checkout);
    if (options.command === "up") {
      supervise();
      await up(options, deps, stop.signal);
    } else {
      const confirm = confirmAt(process.stdin, process.stderr, stop.signal);
      await clean(options.dataDir, deps, options.incusSocket, options.isConfirmed ? undefined : confirm);
    }
  }
} catch (error) {
  // Stopped during the start, at the user's request: no error.
  if (!stop.signal.aborted || error instanceof UsageError) {
    process.exitCode = error instanceof UsageError ? 2 : 1;
    if (error instanceof UserError) deps.print(error.message);
    else process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  }
}
// The channel to the launcher would keep this process alive.
if (process.connected) process.disconnect();
