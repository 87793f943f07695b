import { copyPayload, upgradeAgent } from "./agent.ts";
import { cancelBackup, startBackup } from "./backups.ts";
import { createEngineDatabase, dropEngineDatabase, listEngineDatabases } from "./databases.ts";
import { dropEngineIndex, listEngineIndices } from "./indices.ts";
import { checkEngineUpgrade, convergeInstance, readLogs, readReplication, settleEngineChange } from "./instance.ts";
import {
  listRunningQueries,
  readQueryStatistics,
  readUnsupportedFeatures,
  runConsoleQuery,
  signalQuery,
} from "./queries.ts";
import { callQueue, listEngineQueues, putEngineQueue, removeEngineQueue } from "./queues.ts";
import {
  addAuthUser,
  eraseAuthUser,
  prepareAuthSchema,
  readAuthRows,
  replayAuthErasures,
  revokeAuthSession,
} from "./sign-in.ts";
import type { TaskHandler, TaskKind } from "./task-handler.ts";
import {
  alterEngineTopic,
  createEngineTopic,
  dropEngineGroup,
  dropEngineTopic,
  listEngineGroups,
  listEngineTopics,
  resetEngineGroup,
} from "./topics.ts";
import { checkEnginePassword, dropEngineUser, listEngineUsers, putEngineUser } from "./users.ts";

/** The handler of each kind of task, a file per facet. A kind of the proto that this map lacks does not compile. */
export const handlers = {
  convergeInstance,
  checkEngineUpgrade,
  readLogs,
  readReplication,
  settleEngineChange,
  listEngineUsers,
  putEngineUser,
  dropEngineUser,
  checkEnginePassword,
  listEngineDatabases,
  createEngineDatabase,
  dropEngineDatabase,
  listEngineTopics,
  createEngineTopic,
  alterEngineTopic,
  dropEngineTopic,
  listEngineGroups,
  resetEngineGroup,
  dropEngineGroup,
  listEngineIndices,
  dropEngineIndex,
  putEngineQueue,
  removeEngineQueue,
  listEngineQueues,
  callQueue,
  readQueryStatistics,
  listRunningQueries,
  signalQuery,
  runConsoleQuery,
  readUnsupportedFeatures,
  prepareAuthSchema,
  revokeAuthSession,
  eraseAuthUser,
  readAuthRows,
  addAuthUser,
  replayAuthErasures,
  startBackup,
  cancelBackup,
  upgradeAgent,
  copyPayload,
} satisfies { [K in TaskKind]: TaskHandler<K> };
