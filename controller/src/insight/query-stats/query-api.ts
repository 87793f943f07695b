import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Call, type Handlers, serve, type ServedService } from "@holdfast/common/call.ts";
import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { QueryService, type QueryStatisticsTask } from "@holdfast/proto/holdfast/v1/query_pb.ts";
import { type Task, TaskStatus } from "@holdfast/proto/holdfast/v1/task_pb.ts";
import { auditOf } from "#access/caller.ts";
import type { AuditedActs } from "#kernel/outbox/audited-acts.ts";
import type { AsynchronousTasks } from "#operation/task/asynchronous-tasks.ts";
import type { EngineTasks } from "#services/service/engine-task.ts";
import type { MachineTasks } from "#services/service/machine-task-source.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import type { ServiceAccess } from "#services/service/service-access.ts";
import { statisticMessages, type StatisticsJson } from "./statistics-tasks.ts";

export interface QueryApiDeps {
  readonly access: ServiceAccess;
  readonly tasks: EngineTasks;
  readonly statistics: MachineTasks;
  readonly asynchronous: AsynchronousTasks;
  readonly auditedActs: Pick<AuditedActs, "act">;
}

const defaultLimit = 50;
const runningMax = 200;
const taskTimeoutMs = 60_000;

/** The RPCs of QueryService: query statistics and running queries. */
export function createQueryApi({ access, tasks, statistics, asynchronous, auditedActs }: QueryApiDeps): ServedService {
  /** Throws NOT_SUPPORTED for an engine without query statistics. */
  function requireStatistics(serviceId: string, call: Call): ManagedServiceObject {
    const { databaseType } = access.require(serviceId, call).object.spec;
    if (engineOf(databaseType)?.hasQueryStatistics !== true)
      throw new HoldfastError("NOT_SUPPORTED", `Services of ${databaseType} have no query statistics.`);
    return access.requireRunning(serviceId, call).object;
  }

  async function signalQuery(request: { serviceId: string; queryRunId: string }, terminate: boolean, call: Call) {
    const service = requireStatistics(request.serviceId, call);
    const session = sessionOf(request.queryRunId);
    const value = {
      $typeName: "holdfast.agent.v1.SignalQuery",
      session: { $typeName: "holdfast.agent.v1.EngineSession", ...session },
      terminate,
    } as const;
    const action = terminate ? "query.terminate" : "query.cancel";
    await auditedActs.act(auditOf(call, action, "managed-service", request.serviceId), async () => {
      const { found } = await tasks.run(service, { case: "signalQuery", value }, call.signal);
      if (!found)
        throw new HoldfastError("OBJECT_NOT_FOUND", "The session does not exist any more, or is not a user's.");
    });
    return { queryRunId: request.queryRunId, pid: session.pid };
  }

  const handlers: Handlers<typeof QueryService> = {
    async getQueryStatistics({ serviceId, limit = defaultLimit, order = "total_time" }, call) {
      const service = requireStatistics(serviceId, call);
      const input = inputOf(limit, order);
      const { queries, totalCount, collectedAt, since } = await tasks.run(service, input, call.signal);
      const { databaseType } = service.spec;
      const messages = await statisticMessages(queries, databaseType);
      return {
        queries: messages,
        totalCount,
        databaseType,
        ...(collectedAt && { collectedAt }),
        ...(since && { since }),
      };
    },
    async startQueryStatistics({ serviceId, limit = defaultLimit, sortBy = "total_time" }, call) {
      const service = requireStatistics(serviceId, call);
      return { taskId: await statistics.submit(service, inputOf(limit, sortBy), taskTimeoutMs, call) };
    },
    async getQueryStatisticsTask({ serviceId, taskId }, call) {
      access.require(serviceId, call);
      const isOfService = (ref: { type: string; serviceId: string }) =>
        ref.type === statistics.source.type && ref.serviceId === serviceId;
      return taskMessage(await asynchronous.get(taskId, call, isOfService));
    },
    async listRunningQueries({ serviceId }, call) {
      const service = requireStatistics(serviceId, call);
      const value = { $typeName: "holdfast.agent.v1.ListRunningQueries", limit: runningMax } as const;
      const reported = await tasks.run(service, { case: "listRunningQueries", value }, call.signal);
      return {
        truncated: reported.truncated,
        queries: reported.queries.map(({ session, wait, client, ...query }) => ({
          username: query.username,
          database: query.database,
          state: query.state,
          blockedBy: query.blockedBy,
          ageSeconds: query.ageSeconds,
          ...(query.transactionSeconds !== undefined && { transactionSeconds: query.transactionSeconds }),
          query: query.query,
          queryRunId: queryRunId(session),
          pid: session?.pid ?? 0,
          ...(wait !== "" && { wait }),
          ...(client !== "" && { client }),
        })),
      };
    },
    cancelQuery: (request, call) => signalQuery(request, false, call),
    terminateQuery: (request, call) => signalQuery(request, true, call),
  };
  return serve(QueryService, handlers);
}

function inputOf(limit: number, order: string) {
  return {
    case: "readQueryStatistics",
    value: { $typeName: "holdfast.agent.v1.ReadQueryStatistics", limit, order },
  } as const;
}

function taskMessage({ taskId, status, error, result }: Task) {
  if (status !== TaskStatus.COMPLETED || result === undefined) return { taskId, status, ...(error && { error }) };
  const reported = JSON.parse(Buffer.from(result).toString("utf8")) as StatisticsJson;
  return {
    taskId,
    status,
    queries: reported.queries.map((entry) => ({
      query: entry.query,
      calls: BigInt(entry.calls),
      totalTime: entry.total_time,
      meanTime: entry.mean_time,
      rows: BigInt(entry.rows),
      ...(entry.cache_hit_ratio !== null && { cacheHitRatio: entry.cache_hit_ratio }),
      queryId: entry.query_id,
      database: entry.database,
    })),
    totalCount: BigInt(reported.total_count),
    collectedAt: timestampFromDate(new Date(reported.collected_at)),
    databaseType: reported.database_type,
    since: timestampFromDate(new Date(reported.since)),
  } satisfies Partial<Omit<QueryStatisticsTask, "queries" | "$typeName">> & { queries: unknown };
}

interface EngineSession {
  readonly pid: number;
  readonly startedUs: bigint;
}

/**
 * Id of a session: its pid and its start in microseconds since 1970, such as `4711-1764246000000000`. The start
 * distinguishes it from a later session with the same pid.
 */
function queryRunId(session: EngineSession | undefined): string {
  return session === undefined ? "" : `${session.pid}-${session.startedUs}`;
}

/** Parses the id. Throws OBJECT_NOT_FOUND for any other text. */
function sessionOf(id: string): EngineSession {
  const [, pid, startedUs] = /^([1-9]\d{0,8})-([1-9]\d{0,17})$/.exec(id) ?? [];
  if (pid === undefined || startedUs === undefined)
    throw new HoldfastError("OBJECT_NOT_FOUND", `There is no session ${id}.`);
  return { pid: Number(pid), startedUs: BigInt(startedUs) };
}
