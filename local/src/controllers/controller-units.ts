import { join } from "node:path";
import { controllerFlags } from "@holdfast/controller/nodejs-flags.ts";
import type { Programs } from "../programs.ts";
import {
  type ControllerHostPaths,
  controllerSettingsFile,
  type ControllerUnit,
  ownSettingsFile,
} from "./controller-host.ts";

/** The code that a host's units run. */
export interface UnitCode {
  /** Path of Node. */
  readonly node: string;
  /** Root directory of the code. */
  readonly directory: string;
  readonly programs: Pick<Programs, "controller" | "dns">;
}

export const controllerUnitNames: Readonly<Record<ControllerUnit, string>> = {
  etcd: "holdfast-etcd.service",
  controller: "holdfast-controller.service",
  dns: "holdfast-dns.service",
};

const descriptions: Readonly<Record<ControllerUnit, string>> = {
  etcd: "Holdfast, member of etcd",
  controller: "Holdfast, controller",
  dns: "Holdfast, DNS server",
};

function commandOf(unit: ControllerUnit, { node, directory, programs }: UnitCode): readonly string[] {
  switch (unit) {
    case "etcd":
      return [node, join(directory, "local", "src", "controllers", "etcd-unit.ts")];
    case "controller":
      // grpc-js uses etcd's IP address as TLS server name, and Node would warn about it on each start.
      return [node, "--disable-warning=DEP0123", ...controllerFlags, programs.controller];
    case "dns":
      return [node, programs.dns];
  }
}

/**
 * A unit of systemd of a host with a controller. Each has one program, so that a restart of the controller does not
 * restart etcd. systemd signals the program alone, which ends its own processes (systemd.kill(5)).
 */
export function controllerUnitText(unit: ControllerUnit, code: UnitCode, paths: ControllerHostPaths): string {
  const { data, cache } = paths;
  return `# Written by \`holdfast install controller\`, and again by each \`holdfast upgrade\`. Settings of the operator:
# ${ownSettingsFile(paths)}
[Unit]
Description=${descriptions[unit]}
Documentation=file://${code.directory}/docs/operate/several-controllers.md
Wants=network-online.target
After=network-online.target time-sync.target${unit === "etcd" ? "" : ` ${controllerUnitNames.etcd}`}
RequiresMountsFor=${data.controller} ${cache}
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=${commandOf(unit, code).join(" ")}
Environment=HOLDFAST_CACHE=${cache} NODE_COMPILE_CACHE=${join(cache, "compile-cache")}
EnvironmentFile=${controllerSettingsFile(paths, unit)}
EnvironmentFile=-${ownSettingsFile(paths)}
Restart=always
RestartSec=1
KillMode=mixed
TimeoutStopSec=30
TasksMax=infinity
Slice=holdfast.slice

[Install]
WantedBy=multi-user.target
`;
}
