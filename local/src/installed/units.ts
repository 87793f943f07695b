import { type InstalledKind, type InstalledPaths, settingsFileOf } from "./installed-paths.ts";

/** Program of the release's Node below a release, a link. */
export const nodejsLink = "node";

const descriptions: Readonly<Record<InstalledKind, string>> = {
  platform: "Holdfast, managed databases of this machine",
  host: "Holdfast, machines of another machine's installation",
};
const commands: Readonly<Record<InstalledKind, string>> = { platform: "up", host: "host" };

/**
 * The unit of systemd that runs the supervisor, which starts every other process in order. systemd signals only the
 * supervisor: it stops the machines itself, and they outlive its crash (systemd.kill(5)). A machine that runs out of
 * memory is repaired by its keeper, so it must not stop the unit (OOMPolicy).
 */
export function unitText(kind: InstalledKind, paths: InstalledPaths, dataDir: string): string {
  return `# Written by \`holdfast install\`, and again by each \`holdfast upgrade\`. Settings: ${settingsFileOf(paths, kind)}
[Unit]
Description=${descriptions[kind]}
Documentation=file://${paths.current}/docs/operate/install.md
Wants=network-online.target
After=network-online.target time-sync.target
RequiresMountsFor=${dataDir} ${paths.cache}
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=${paths.current}/${nodejsLink} ${paths.current}/local/src/main.ts ${commands[kind]}
Environment=HOLDFAST_CACHE=${paths.cache} HOLDFAST_DATA=${dataDir} HOLDFAST_PROGRAM=holdfast
EnvironmentFile=-${settingsFileOf(paths, kind)}
Restart=always
RestartSec=2
KillMode=process
TimeoutStopSec=180
OOMPolicy=continue
TasksMax=infinity
Slice=holdfast.slice
CPUAccounting=yes
MemoryAccounting=yes
IOAccounting=yes

[Install]
WantedBy=multi-user.target
`;
}

/** The command \`holdfast\` of this machine. */
export function launcherText({ current, cache }: InstalledPaths): string {
  return `#!/bin/sh
# Written by \`holdfast install\`.
export HOLDFAST_CACHE="\${HOLDFAST_CACHE:-${cache}}" HOLDFAST_PROGRAM=holdfast
exec ${current}/${nodejsLink} ${current}/bin/holdfast.js "$@"
`;
}
