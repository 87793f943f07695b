/**
 * What agent and keeper say to each other over the keeper's Unix socket: one JSON object a line, each request answered
 * by one line with the same id; changes of components come unasked as `event` lines.
 *
 * A keeper lives as long as its machine runs, and sees agents of later versions: requests are only ever added, and each
 * addition raises `keeperProtocol` (common/src/keeper-protocol.ts). An agent asks a keeper for nothing that came after the number
 * that it tells; one that tells none is of version 1.
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
   * The right to run: at now + leftMs the keeper kills the component unless extended. `number` only grows; a lower one is
   * refused. leftMs null takes the deadline away (a one-member service).
   */
  | {
      readonly id: number;
      readonly op: "extend";
      readonly name: string;
      readonly number: number;
      readonly leftMs: number | null;
      /** Since 4: stands for leftMs, in milliseconds since the host's start, so that time on the way here counts. */
      readonly untilMs?: number;
    }
  /**
   * Since 2: takes charge of the machine. From then on the keeper takes orders from no other connection, and grants it to
   * nobody until this run of the agent is over. `run` is what the keeper gave it in HOLDFAST_AGENT_RUN.
   */
  | { readonly id: number; readonly op: "claim"; readonly run: string }
  /**
   * Since 2: who is in charge has another agent started beside it, from this file below the machine's own code, and tells it
   * the controller that it is connected to.
   */
  | { readonly id: number; readonly op: "offer"; readonly main: string; readonly controller: string }
  /** Since 2: the other agent could take over now. */
  | { readonly id: number; readonly op: "ready"; readonly run: string }
  /**
   * Since 2: who is in charge stopped writing and hands over, with what the next one is to know. Answered when that one is
   * settled; an error says that it is gone, and that this one is in charge as before.
   */
  | { readonly id: number; readonly op: "yield"; readonly state: string }
  /** Since 2: the next one has taken over; refused when its time was over. */
  | { readonly id: number; readonly op: "settled"; readonly run: string }
  /** Since 2: who is in charge wants no other agent any more; answered when nothing of it is left. */
  | { readonly id: number; readonly op: "withdraw" };

export interface ComponentSpec {
  readonly name: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** For its standard input; nothing when absent. */
  readonly input?: string;
  /** Standard output and error: segments `<path>.<n>`, a new one at maxBytes, the newest `keep` of them stay. */
  readonly log: { readonly path: string; readonly maxBytes: number; readonly keep: number };
  /** How the keeper stops the component when it is stopped itself; the same as a `stop` request would say. */
  readonly stop: { readonly signal: NodeJS.Signals; readonly graceMs: number };
  /** Milliseconds until the first deadline; null for none. */
  readonly deadlineMs: number | null;
  /** Since 4: stands for deadlineMs, in milliseconds since the host's start. */
  readonly untilMs?: number;
}

/** `empty`: nothing of the component is left. Only this means stopped. */
export interface ComponentStatus {
  readonly name: string;
  readonly state: "running" | "stopping" | "empty";
  readonly pid: number | null;
  /** Wall time in milliseconds since 1970; 0 before the first start. */
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly exit: { readonly code: number | null; readonly signal: string | null } | null;
  /** Why it ended: asked, crashed, or its right ran out. */
  readonly cause: "requested" | "exited" | "deadline" | null;
  readonly starts: number;
  /** Since 2: highest number of an extension of its right; who comes next counts on from there. */
  readonly rightNumber?: number;
  /** Since 6, in answers to `status` while it runs: CPU time in milliseconds of its process's first thread. */
  readonly cpuMs?: number;
}

export type KeeperReply =
  | {
      readonly id: number;
      readonly ok: true;
      readonly components: readonly ComponentStatus[];
      /** Since 2. */
      readonly protocol?: number;
      /** Since 2, to yield and settled: milliseconds for which nobody was in charge. */
      readonly gapMs?: number;
    }
  | { readonly id: number; readonly ok: false; readonly error: string };

export type KeeperEvent =
  | { readonly event: "component"; readonly component: ComponentStatus }
  /** To the agent that was offered: it is in charge, and has little time to settle. */
  | { readonly event: "charge"; readonly state: string }
  /** To the one in charge, of the one that it had started. */
  | { readonly event: "successor"; readonly state: "ready" | "gone"; readonly reason: string };
