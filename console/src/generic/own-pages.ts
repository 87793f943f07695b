import type { PagePattern } from "../page-patterns.ts";

/** Operations with a separate page, by their ids in /openapi.json; all others have the generic page. */
// biome-ignore format: a table, aligned so that it reads as one
export const ownPages: Readonly<Record<string, PagePattern>> = {
  listManagedServices:  "/services",
  createManagedService: "/services/new",
  getManagedService:    "/services/:id/:tab?",
  updateManagedService: "/services/:id/:tab?",
  deleteManagedService: "/services/:id/:tab?",
  startManagedService:  "/services/:id/:tab?",
  stopManagedService:   "/services/:id/:tab?",
  restartManagedService: "/services/:id/:tab?",
  getConnection:        "/services/:id/:tab?",
  listLogs:             "/services/:id/:tab?",
  getMetrics:           "/services/:id/:tab?",
  listDatabaseUsers:    "/services/:id/:tab?",
  createDatabaseUser:   "/services/:id/:tab?",
  deleteDatabaseUser:   "/services/:id/:tab?",
  listDatabases:        "/services/:id/:tab?",
  createDatabase:       "/services/:id/:tab?",
  listBackups:          "/services/:id/:tab?",
  createBackup:         "/services/:id/:tab?",
  restoreToPoint:       "/services/:id/:tab?",
  executeQuery:         "/services/:id/:tab?",
  listServiceEvents:    "/services/:id/:tab?",
  listEvents:           "/events",
  listMembers:          "/members",
  addMember:            "/members",
  updateMember:         "/members",
  removeMember:         "/members",
  createUser:           "/members",
  listApiKeys:          "/keys",
  createApiKey:         "/keys",
  deleteApiKey:         "/keys",
  listAuditLog:         "/audit",
  listSessions:         "/sessions",
  deleteSession:        "/sessions",
  deleteCurrentSession: "/sessions",
};

/** Operations without a page, each with the reason. */
// biome-ignore format: a table, aligned so that it reads as one
export const withoutPage: Readonly<Record<string, string>> = {
  createSession:     "it is the sign-in, before there is a page",
  getCurrentSession: "the console calls it when it starts",
  createSessionCode: "its code signs another browser in, by `holdfast console`",
  setUpUser:         "it sets the first password of a user who is not signed in",
};
