import { create } from "@bufbuild/protobuf";
import { RunConsoleQueryResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { readOnlyQueryOf } from "./facets.ts";
import { packContent } from "./packed-content.ts";
import type { TaskHandler } from "./task-handler.ts";

export const runConsoleQuery: TaskHandler<"runConsoleQuery"> = {
  async run(query, context) {
    const { driver, instance } = await context.engine();
    const bytesMax = query.contentBytesMax || query.bytesMax;
    const { qualifiedSql, qualifiedNames: qualified } = query;
    const asked = { ...query, bytesMax, qualified, sql: qualifiedSql || query.sql };
    const answer = await readOnlyQueryOf(driver).run(instance, asked, context.signal);
    if ("refusal" in answer) return create(RunConsoleQueryResultSchema, { refusal: answer.refusal });
    const bytes = Buffer.from(answer.rows, "utf8");
    const { columns, rowCount, truncated } = answer;
    const rows = query.contentBytesMax > 0 ? { content: await packContent(bytes, context) } : { rows: bytes };
    const told = { columns: [...columns], rowCount, truncated, executionMs: BigInt(answer.executionMs) };
    return create(RunConsoleQueryResultSchema, { ...told, ...rows });
  },
};
