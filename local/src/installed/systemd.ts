import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { UserError } from "../user-error.ts";

/** State of a unit. */
export interface UnitState {
  /** Process id of the supervisor; 0 while none runs. */
  readonly mainPid: number;
  /** Number of its restarts since the unit was started by hand, automatic ones only. */
  readonly restarts: number;
}

/** The part of systemd that an installation uses. */
export interface ServiceManager {
  /** Reads changed units again. */
  reload(): Promise<void>;
  /** Has the unit start now and at each boot. */
  enable(unit: string): Promise<void>;
  /** Stops the unit's program and starts it again. */
  restart(unit: string): Promise<void>;
  /** Stops the unit with its machines, and no longer starts it at boot. */
  disable(unit: string): Promise<void>;
  /** Ends the supervisor without its machines; systemd starts it again, from the current release. */
  handOver(unit: string): Promise<void>;
  state(unit: string): Promise<UnitState>;
  /** Newest lines of the unit's processes, with the reasons for which they ended. */
  log(unit: string, lines: number): Promise<string>;
}

/**
 * Entries of systemd that explain the end of a process: it exited, it could not be executed (sd-messages.h). systemd
 * also writes entries about every process of machines that continues, which are many at each start.
 */
const explanations = ["98e322203f7a4ed290d09fe03c09fe15", "641257651c1b4ec9a8624d7a40a9e1e7"];

/** The systemd of this machine. Throws a UserError if it is not the machine's first process. */
export function openSystemd(): ServiceManager {
  // sd_booted(3)
  if (!existsSync("/run/systemd/system"))
    throw new UserError("systemd does not run this machine: `npm start` runs Holdfast in a terminal instead");
  const systemctl = (...args: readonly string[]) => run("systemctl", args);
  return {
    reload: async () => void (await systemctl("daemon-reload")),
    enable: async (unit) => void (await systemctl("enable", "--now", unit)),
    restart: async (unit) => void (await systemctl("restart", unit)),
    disable: async (unit) => void (await systemctl("disable", "--now", unit)),
    handOver: async (unit) => void (await systemctl("kill", "--kill-who=main", "--signal=SIGUSR2", unit)),
    async state(unit) {
      const text = await systemctl("show", "--property=MainPID,NRestarts", unit);
      const numberOf = (name: string) => Number(new RegExp(`^${name}=(\\d+)$`, "m").exec(text)?.[1] ?? 0);
      return { mainPid: numberOf("MainPID"), restarts: numberOf("NRestarts") };
    },
    async log(unit, lines) {
      const ends = ["_UID=0", `UNIT=${unit}`, ...explanations.map((id) => `MESSAGE_ID=${id}`)];
      const matches = [`_SYSTEMD_UNIT=${unit}`, "+", ...ends];
      return run("journalctl", ["--lines", String(lines), "--no-pager", "--output=cat", ...matches]);
    },
  };
}

/** Output of a command. Throws a UserError with its message if it fails. */
function run(command: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(command, [...args], { timeout: 300_000, encoding: "utf8" }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new UserError(`${[command, ...args].join(" ")} failed: ${stderr.trim() || error.message}`));
    });
  });
}
