/** Access of a user to all data. */
export type Access = "readwrite" | "readonly";

/** Commands that need no sign-in. */
const anonymous = [
  "buildInfo",
  "buildinfo",
  "connectionStatus",
  "hello",
  "isMaster",
  "ismaster",
  "logout",
  "ping",
  "saslContinue",
  "saslStart",
  "whatsmyuri",
];

/** Commands of every signed-in user. */
const reading = [
  "aggregate",
  "collStats",
  "count",
  "dataSize",
  "dbStats",
  "dbstats",
  "distinct",
  "endSessions",
  "explain",
  "find",
  "getMore",
  "getParameter",
  "killCursors",
  "listCollections",
  "listCommands",
  "listDatabases",
  "listIndexes",
  "refreshSessions",
  "serverStatus",
  "startSession",
];

/** Commands of users who may write. */
const writing = [
  "collMod",
  "compact",
  "create",
  "createIndexes",
  "delete",
  "drop",
  "dropDatabase",
  "dropIndexes",
  "findAndModify",
  "findandmodify",
  "insert",
  "reIndex",
  "renameCollection",
  "update",
  "validate",
];

export type CommandClass = "anonymous" | "reading" | "writing" | "users" | "transaction";

/** Commands about users and roles, which only the platform's API changes. */
const ofUsers = [
  "createRole",
  "createUser",
  "dropAllRolesFromDatabase",
  "dropAllUsersFromDatabase",
  "dropRole",
  "dropUser",
  "grantPrivilegesToRole",
  "grantRolesToRole",
  "grantRolesToUser",
  "invalidateUserCache",
  "revokePrivilegesFromRole",
  "revokeRolesFromRole",
  "revokeRolesFromUser",
  "rolesInfo",
  "updateRole",
  "updateUser",
  "usersInfo",
];

const ofTransactions = ["abortTransaction", "commitTransaction"];

const classes: ReadonlyMap<string, CommandClass> = new Map(
  (
    [
      ["anonymous", anonymous],
      ["reading", reading],
      ["writing", writing],
      ["users", ofUsers],
      ["transaction", ofTransactions],
    ] as const
  ).flatMap(([commandClass, names]) => names.map((name) => [name, commandClass] as const)),
);

/** Undefined for a command that is never forwarded, because the engine lacks it or it is about the machine. */
export function classOf(command: string): CommandClass | undefined {
  return classes.get(command);
}

/** True for a write of documents, whose response has an error for each of them that fails. */
export function isWriting(command: string): boolean {
  return sequenceOf.has(command);
}

/** The document sequence that a command may have beside its document. */
export const sequenceOf: ReadonlyMap<string, string> = new Map([
  ["insert", "documents"],
  ["update", "updates"],
  ["delete", "deletes"],
]);
