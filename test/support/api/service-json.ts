import type { Connection, LogPage, ManagedService, Operation, Problem } from "../../../sdk/src/index.ts";

/**
 * Answers of the API as tests read them: as the SDK types them, which is compared with the protos (ADR 8). The shape of every
 * answer is checked as well.
 */
export type ServiceJson = ManagedService;
export type OperationJson = Operation;
export type ConnectionJson = Connection;
/** Without the status: an answer is read as either what was asked for or a problem. */
export type ProblemJson = Pick<Problem, "code" | "detail" | "errors">;
export type LogsJson = LogPage;

/** One page of a list, under the name of what it lists. */
export type PageJson<Plural extends string, Item> = Readonly<Record<Plural, readonly Item[]>> & {
  readonly next_cursor: string | null;
};
