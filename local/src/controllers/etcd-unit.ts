import { spawn } from "node:child_process";
import { dirname } from "node:path";
import { lookUp } from "@holdfast/common/look-up.ts";
import { imagesDirectory } from "@holdfast/image/node-image.ts";
import { programPid } from "@holdfast/image/in-image.ts";
import { hostDeps } from "../host-deps.ts";
import { signalIfRunning } from "../recorded-process.ts";
import { openEtcd } from "../software.ts";
import { etcdFlagsOf, etcdUid } from "./controller-host.ts";

/**
 * The program of the unit holdfast-etcd.service: etcd of the newest node image, which is built if there is none, else
 * the host's. The environment has etcd's own variables. It ends when etcd ends, with its exit code.
 */
const stop = new AbortController();
const { environment, print, asRoot } = hostDeps();
const imagesDir = imagesDirectory(environment);
const etcd = await openEtcd({ imagesDir, environment, print, signal: stop.signal });
const directory = (name: string) => dirname(lookUp(environment, name) ?? "/");
const { command, args } = etcd.launch({
  argv: [etcd.executable("etcd"), ...etcdFlagsOf(environment)],
  uid: etcdUid,
  binds: [directory("ETCD_DATA_DIR"), directory("ETCD_CERT_FILE")],
  asRoot,
});
const child = spawn(command, args, { cwd: "/", env: {}, stdio: ["ignore", "inherit", "inherit"] });
for (const signal of ["SIGTERM", "SIGINT"] as const)
  process.on(signal, () => {
    const program = child.pid === undefined ? undefined : programPid(child.pid);
    if (program !== undefined) signalIfRunning(program, signal);
  });
child.once("error", (error) => {
  print(`etcd does not start: ${error.message}`);
  process.exitCode = 1;
});
child.once("exit", (code) => {
  process.exitCode = code ?? 1;
});
