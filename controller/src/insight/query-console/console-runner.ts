import type { Call } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type {
  ConsoleRefusal,
  RunConsoleQuery,
  RunConsoleQueryResult,
  TaskResult,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { PackedContents } from "#fleet/payload/payloads.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import type { ServiceAccess } from "#services/service/service-access.ts";
import type { EngineConsole } from "./engine-console.ts";
import { engineConsoleOf } from "./engine-consoles.ts";
import type { StatementVerdict } from "./statement-verdict.ts";
import { taskTarget } from "#services/service/member/member-roles.ts";

/** A statement that the guard accepted: its printed text, and its names. */
export type AcceptedStatement = Exclude<StatementVerdict, { readonly refused: string }>;

type StatementNames = Pick<AcceptedStatement, "functions" | "types" | "relations" | "qualified">;

export type ConsoleResult =
  | Pick<RunConsoleQueryResult, "columns" | "rows" | "rowCount" | "executionMs" | "truncated">
  | { readonly refusal: ConsoleRefusal };

/** Runs accepted statements by the agent of a service's primary. */
export interface ConsoleRunner {
  /**
   * The service and its engine's console. Throws INVALID_REQUEST if the engine has no console, or the service does not
   * run.
   */
  require(serviceId: string, call: Call): { readonly service: ManagedServiceObject; readonly engine: EngineConsole };
  /**
   * Throws RATE_LIMITED while four statements of the service run, and MACHINE_UNREACHABLE. A refusal by the engine is a
   * result.
   */
  run(
    service: ManagedServiceObject,
    database: string,
    statement: Pick<AcceptedStatement, "sql"> & Partial<StatementNames>,
    signal: AbortSignal,
  ): Promise<ConsoleResult>;
}

const rowsMax = 1_000;
const bytesMax = 8 << 20;
/** Maximum size of a result inside the task's message; larger results are sent through the object store. */
const inlineBytesMax = 3 << 20;
const statementTimeoutMs = 30_000;
/**
 * Time-out of the task, which includes the transfer of rows through the object store: all tasks share its bandwidth.
 */
const taskTimeoutMs = statementTimeoutMs + 10_000;

export function createConsoleRunner({
  access,
  fleet,
  contents,
}: {
  readonly access: ServiceAccess;
  readonly fleet: Pick<Fleet, "run">;
  readonly contents: PackedContents;
}): ConsoleRunner {
  return {
    require(serviceId, call) {
      const { object } = access.require(serviceId, call);
      const { state } = object.status;
      const engine = engineConsoleOf(object.spec.databaseType);
      if (engine === undefined)
        throw wrongService("not_supported", `Services of ${object.spec.databaseType} have no query console.`);
      if (state !== "Running" || object.spec.power !== "on" || object.metadata.deletionRequestedAt !== undefined)
        throw wrongService("wrong_state", `The service must be Running for this; it is ${state}.`);
      return { service: object, engine };
    },

    async run(service, database, { sql, functions = [], types = [], relations = [], qualified = [] }, signal) {
      const value = {
        $typeName: "holdfast.agent.v1.RunConsoleQuery" as const,
        database,
        sql: qualified.length === 0 ? sql : "",
        qualifiedSql: qualified.length === 0 ? "" : sql,
        functions: [...functions],
        types: [...types],
        relations: [...relations],
        qualifiedNames: qualified.map((each) => ({ $typeName: "holdfast.agent.v1.ConsoleName", ...each })),
        rowsMax,
        bytesMax: inlineBytesMax,
        contentBytesMax: bytesMax,
        timeoutMs: statementTimeoutMs,
      } satisfies RunConsoleQuery;
      const request = {
        ownerId: service.metadata.id,
        generation: service.spec.instanceGeneration,
        term: service.status.term,
        lane: "query",
        input: { case: "runConsoleQuery", value },
        deadlineMs: taskTimeoutMs,
      } as const;
      const { id: machineId } = taskTarget(service);
      const { refusal, content, ...result } = resultIn(await fleet.run(machineId, request, taskTimeoutMs, signal));
      if (refusal !== undefined) return { refusal };
      const { columns, rowCount, executionMs, truncated } = result;
      try {
        const rows = content === undefined ? result.rows : await contents.unpack(machineId, content, signal);
        return { columns, rows, rowCount, executionMs, truncated };
      } finally {
        if (content !== undefined) await contents.drop(machineId, content);
      }
    },
  };
}

function resultIn({ failure, output }: TaskResult): RunConsoleQueryResult {
  if (failure?.code === "engine_busy") throw new HoldfastError("RATE_LIMITED", failure.message, { retryAfterS: 1 });
  if (failure?.code === "not_supported") throw wrongService("not_supported", failure.message);
  if (output.case === "runConsoleQuery") return output.value;
  throw new HoldfastError("MACHINE_UNREACHABLE", failure?.message ?? "The agent did not run the query.");
}

function wrongService(code: string, detail: string): HoldfastError {
  return new HoldfastError("INVALID_REQUEST", detail, {
    errors: [{ field: "service_id", pointer: null, code, detail }],
  });
}
