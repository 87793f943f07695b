/**
 * What agent and keeper say to each other over the keeper's Unix socket: one JSON object a line, each request answered
 * by one line with the same id; changes of components come unasked as `event` lines.
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
    };

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
}

export type KeeperReply =
  | { readonly id: number; readonly ok: true; readonly components: readonly ComponentStatus[] }
  | { readonly id: number; readonly ok: false; readonly error: string };

export interface KeeperEvent {
  readonly event: "component";
  readonly component: ComponentStatus;
}
