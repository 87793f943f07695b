/**
 * Protocol between agent and keeper over the keeper's Unix socket: one JSON object a line. Each request gets one
 * response line with the same id; changes of components are pushed as `event` lines.
 *
 * A keeper lives as long as its machine runs and serves agents of later releases, so requests are only ever added. Each
 * addition raises `keeperProtocol` (common/src/keeper-protocol.ts); an agent sends nothing that is newer than the
 * version in the keeper's responses. Versions before 6 are no longer served.
 */

export type KeeperRequest =
  | { readonly id: number; readonly op: "start"; readonly component: ComponentSpec }
  | {
      readonly id: number;
      readonly op: "stop";
      readonly name: string;
      readonly signal: NodeJS.Signals;
      readonly graceMs: number;
    }
  | { readonly id: number; readonly op: "signal"; readonly name: string; readonly signal: NodeJS.Signals }
  | { readonly id: number; readonly op: "status" }
  /**
   * Extends the component's deadline, which is the end of its primary lease: the keeper kills the component at
   * `untilMs` (milliseconds since the start of the host) unless it is extended before. `leftMs: null` without `untilMs`
   * removes the deadline, for a service of one member. Numbers only grow; a lower one is refused.
   */
  | {
      readonly id: number;
      readonly op: "extend";
      readonly name: string;
      readonly number: number;
      readonly untilMs: number;
    }
  | {
      readonly id: number;
      readonly op: "extend";
      readonly name: string;
      readonly number: number;
      readonly leftMs: null;
    }
  /**
   * Takes charge of the machine: from then on the keeper accepts orders only from this connection, until this run of
   * the agent ends. `run` is the value of HOLDFAST_AGENT_RUN.
   */
  | { readonly id: number; readonly op: "claim"; readonly run: string }
  /**
   * The agent in charge requests the start of a second agent from this file, which is in the machine's code directory.
   * `controller` is the controller of the current session (host:port), which the new agent dials first.
   */
  | { readonly id: number; readonly op: "offer"; readonly main: string; readonly controller: string }
  /** The new agent is ready to take over. */
  | { readonly id: number; readonly op: "ready"; readonly run: string }
  /**
   * The agent in charge has stopped writing and hands over, with state for the new agent. The response follows once the
   * new agent is settled; an error means that it ended and that this agent is in charge as before.
   */
  | { readonly id: number; readonly op: "yield"; readonly state: string }
  /** The new agent has taken over; refused after its time limit. */
  | { readonly id: number; readonly op: "settled"; readonly run: string }
  /** The agent in charge withdraws its offer; the response follows once the new agent has ended. */
  | { readonly id: number; readonly op: "withdraw" };

export interface ComponentSpec {
  readonly name: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Content of the component's standard input; absent: empty. */
  readonly input?: string;
  /** Standard output and error go to segments `<path>.<n>` of `maxBytes`; the newest `keep` of them are retained. */
  readonly log: {
    readonly path: string;
    readonly maxBytes: number;
    readonly keep: number;
    /** True to begin each line with its time, in ISO 8601. From protocol 7 on. */
    readonly stamped?: boolean;
    /**
     * True to have `!` in place of the space after the time of each line of standard error, in a stamped log. Earlier
     * keepers ignore it.
     */
    readonly marksErrors?: boolean;
  };
  /**
   * "container": root of a new user namespace with the ids of the machine's containers, for programs of users and the
   * programs that prepare them. From protocol 7 on. "front": the engine's user, who may listen on ports below 1024.
   * From protocol 8 on. Absent: the engine's user.
   */
  readonly role?: "container" | "front";
  /** Signal and grace period with which the keeper stops the component when the keeper itself is stopped. */
  readonly stop: { readonly signal: NodeJS.Signals; readonly graceMs: number };
  /** Always null; keepers of protocol 6 require the field. */
  readonly deadlineMs: null;
  /** First deadline, in milliseconds since the start of the host; absent for none. */
  readonly untilMs?: number;
}

/** `empty` means that no process of the component remains; only this state counts as stopped. */
export interface ComponentStatus {
  readonly name: string;
  readonly state: "running" | "stopping" | "empty";
  readonly pid: number | null;
  /** Wall time in milliseconds since 1970; 0 before the first start. */
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly exit: { readonly code: number | null; readonly signal: string | null } | null;
  /** Cause of the end: a request, the program's own exit, or the deadline. Null while the component runs. */
  readonly cause: "requested" | "exited" | "deadline" | null;
  readonly starts: number;
  /** Highest number of an extension so far; the next agent continues from it. */
  readonly rightNumber?: number;
  /** CPU time of the first process's first thread in milliseconds; only in responses to `status` during a run. */
  readonly cpuMs?: number;
}

export type KeeperReply =
  | {
      readonly id: number;
      readonly ok: true;
      readonly components: readonly ComponentStatus[];
      readonly protocol: number;
      /** Milliseconds without an agent in charge; only in responses to `yield` and `settled`. */
      readonly gapMs?: number;
    }
  | { readonly id: number; readonly ok: false; readonly error: string };

export type KeeperEvent =
  | { readonly event: "component"; readonly component: ComponentStatus }
  /** Sent to the new agent: it is in charge, and has 1 s to settle. */
  | { readonly event: "charge"; readonly state: string }
  /** Sent to the agent in charge: the new agent is ready, or has ended. */
  // oxlint-disable-next-line holdfast/values -- agents of all releases read it
  | { readonly event: "successor"; readonly state: "ready" | "gone"; readonly reason: string };
