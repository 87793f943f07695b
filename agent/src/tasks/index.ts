import { checkEnginePassword } from "./check-engine-password.ts";
import { convergeInstance } from "./converge-instance.ts";
import { copyPayload } from "./copy-payload.ts";
import { createEngineDatabase } from "./create-engine-database.ts";
import { dropEngineDatabase } from "./drop-engine-database.ts";
import { dropEngineUser } from "./drop-engine-user.ts";
import { listEngineDatabases } from "./list-engine-databases.ts";
import { listEngineUsers } from "./list-engine-users.ts";
import { putEngineUser } from "./put-engine-user.ts";
import { readLogs } from "./read-logs.ts";
import { restartInstance } from "./restart-instance.ts";
import { settleEngineChange } from "./settle-engine-change.ts";
import type { TaskHandler, TaskKind } from "./task-handler.ts";
import { upgradeAgent } from "./upgrade-agent.ts";

/** Who does which task. A kind in the proto and not here does not compile. */
export const handlers = {
  convergeInstance,
  restartInstance,
  listEngineUsers,
  putEngineUser,
  dropEngineUser,
  checkEnginePassword,
  listEngineDatabases,
  createEngineDatabase,
  dropEngineDatabase,
  readLogs,
  copyPayload,
  settleEngineChange,
  upgradeAgent,
} satisfies { [K in TaskKind]: TaskHandler<K> };
