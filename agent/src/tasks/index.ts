import { addAuthUser } from "./add-auth-user.ts";
import { callQueue } from "./call-queue.ts";
import { cancelBackup } from "./cancel-backup.ts";
import { checkEnginePassword } from "./check-engine-password.ts";
import { checkEngineUpgrade } from "./check-engine-upgrade.ts";
import { convergeInstance } from "./converge-instance.ts";
import { copyPayload } from "./copy-payload.ts";
import { createEngineDatabase } from "./create-engine-database.ts";
import { dropEngineDatabase } from "./drop-engine-database.ts";
import { dropEngineUser } from "./drop-engine-user.ts";
import { eraseAuthUser } from "./erase-auth-user.ts";
import { inspectBackup } from "./inspect-backup.ts";
import { listEngineDatabases } from "./list-engine-databases.ts";
import { listEngineQueues } from "./list-engine-queues.ts";
import { listEngineUsers } from "./list-engine-users.ts";
import { prepareAuthSchema } from "./prepare-auth-schema.ts";
import { putEngineQueue } from "./put-engine-queue.ts";
import { putEngineUser } from "./put-engine-user.ts";
import { listRunningQueries } from "./list-running-queries.ts";
import { readAuthRows } from "./read-auth-rows.ts";
import { readQueryStatistics } from "./read-query-statistics.ts";
import { replayAuthErasures } from "./replay-auth-erasures.ts";
import { revokeAuthSession } from "./revoke-auth-session.ts";
import { runConsoleQuery } from "./run-console-query.ts";
import { signalQuery } from "./signal-query.ts";
import { readLogs } from "./read-logs.ts";
import { readReplication } from "./read-replication.ts";
import { removeEngineQueue } from "./remove-engine-queue.ts";
import { restartInstance } from "./restart-instance.ts";
import { settleEngineChange } from "./settle-engine-change.ts";
import { startBackup } from "./start-backup.ts";
import type { TaskHandler, TaskKind } from "./task-handler.ts";
import { upgradeAgent } from "./upgrade-agent.ts";
import { verifyBackup } from "./verify-backup.ts";

/** Who does which task. A kind in the proto and not here does not compile. */
export const handlers = {
  convergeInstance,
  restartInstance,
  listEngineUsers,
  putEngineUser,
  dropEngineUser,
  checkEnginePassword,
  checkEngineUpgrade,
  listEngineDatabases,
  createEngineDatabase,
  dropEngineDatabase,
  readLogs,
  copyPayload,
  settleEngineChange,
  upgradeAgent,
  readQueryStatistics,
  listRunningQueries,
  signalQuery,
  runConsoleQuery,
  putEngineQueue,
  removeEngineQueue,
  listEngineQueues,
  callQueue,
  startBackup,
  inspectBackup,
  cancelBackup,
  verifyBackup,
  readReplication,
  prepareAuthSchema,
  revokeAuthSession,
  eraseAuthUser,
  readAuthRows,
  addAuthUser,
  replayAuthErasures,
} satisfies { [K in TaskKind]: TaskHandler<K> };
