import { type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { type FieldFault, HoldfastError } from "@holdfast/common/errors.ts";
import { QueryConsoleService } from "@holdfast/proto/holdfast/v1/query_console_pb.ts";
import { auditOf } from "#access/caller.ts";
import type { AuditedActs } from "#kernel/outbox/audited-acts.ts";
import { engineProfileOf } from "#services/engine/engine-profiles.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import type { ChatModel } from "./chat-model.ts";
import type { ConsoleRunner } from "./console-runner.ts";
import type { GuardThreads } from "./guard-thread.ts";
import { requestPosition } from "./statement-positions.ts";
import { requireModel, translateQuestion } from "./translate-question.ts";

export interface QueryConsoleApiDeps {
  readonly runner: ConsoleRunner;
  readonly guards: Pick<GuardThreads, "of">;
  /** The language model; undefined if operators have configured none. */
  readonly model: ChatModel | undefined;
  readonly auditedActs: Pick<AuditedActs, "act">;
}

const sqlBytesMax = 65_536;

/**
 * The RPCs of QueryConsoleService. A statement is parsed and checked in a worker thread (`<engine>/guard.ts`: only
 * nodes that read are allowed), printed again from its parse tree, and run by the agent of the service's primary as a
 * login that only reads. The audit log has its text without constants, and its outcome. A question in words becomes a
 * statement by a language model and passes the same checks.
 */
export function createQueryConsoleApi(deps: QueryConsoleApiDeps): ServedService {
  const { runner, guards, auditedActs } = deps;

  const handlers: Handlers<typeof QueryConsoleService> = {
    async translateQuestion({ serviceId, question, databaseName }, call) {
      const { service, engine } = runner.require(serviceId, call);
      const model = requireModel(deps.model);
      const request = { service, engine, database: databaseName ?? databaseOf(service), question };
      const { sql, explanation, warning } = await auditedActs.act(
        auditOf(call, "query-console.translate", "managed-service", serviceId),
        () => translateQuestion({ model, runner, guards }, request, call.signal),
      );
      const { databaseType } = service.spec;
      return { sql, explanation, databaseType, ...(warning !== undefined && { warning }) };
    },

    async executeQuery({ serviceId, sql, databaseName }, call) {
      const { service, engine } = runner.require(serviceId, call);
      const verdict = await guards.of(engine).check(sql);
      if ("refused" in verdict) throw sqlRefused(verdict.refused, verdict.position);
      const entry = auditOf(call, "query-console.execute", "managed-service", serviceId, verdict.auditText);
      return auditedActs.act(entry, async () => {
        const result = await runner.run(service, databaseName ?? databaseOf(service), verdict, call.signal);
        if ("refusal" in result) throw sqlRefused(result.refusal.message, requestPosition(result.refusal, verdict));
        return result;
      });
    },
  };
  return serve(QueryConsoleService, handlers, {
    executeQuery: ({ sql }) => faultsOf(sql),
    translateQuestion: ({ question }) => faultsOfQuestion(question),
  });
}

function databaseOf({ spec }: ManagedServiceObject): string {
  return engineProfileOf(spec.databaseType).connectionDatabase;
}

/** The limit of bytes, which the protos cannot express. */
function faultsOf(sql: string): readonly FieldFault[] {
  if (Buffer.byteLength(sql) <= sqlBytesMax) return [];
  return [{ field: "sql", pointer: "/sql", code: "too_long", detail: `must be at most ${sqlBytesMax} bytes` }];
}

function faultsOfQuestion(question: string): readonly FieldFault[] {
  if (question === "" || question.trim() !== "") return [];
  return [{ field: "question", pointer: "/question", code: "required", detail: "must not be blank" }];
}

function sqlRefused(reason: string, position: number): HoldfastError {
  const detail = position > 0 ? `${reason} (at character ${position})` : reason;
  return new HoldfastError("SQL_REFUSED", detail, {
    errors: [{ field: "sql", pointer: "/sql", code: "sql_refused", detail }],
  });
}
