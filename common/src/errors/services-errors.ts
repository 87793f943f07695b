import type { ErrorEntry } from "./error-entry.ts";

/** Errors of services and their engines. */
// biome-ignore format: a table, aligned so that it reads as one
export const servicesErrors = {
  SERVICE_NOT_FOUND:        { grpc: "NOT_FOUND",           status: 404, title: "No such service",                       help: "It does not exist, was deleted, or belongs to another organization. List the services to see their ids." },
  DATABASE_USER_NOT_FOUND:  { grpc: "NOT_FOUND",           status: 404, title: "No such database user",                 help: "List the users of the service to see their names." },
  DATABASE_NOT_FOUND:       { grpc: "NOT_FOUND",           status: 404, title: "No such database",                      help: "List the databases of the service to see their names." },
  FILES_KEY_NOT_FOUND:      { grpc: "NOT_FOUND",           status: 404, title: "No such key",                           help: "List the keys of the files service to see their ids." },
  TOPIC_NOT_FOUND:          { grpc: "NOT_FOUND",           status: 404, title: "No such topic",                         help: "List the topics of the service to see their names." },
  INDEX_NOT_FOUND:          { grpc: "NOT_FOUND",           status: 404, title: "No such index",                         help: "List the indices of the service to see their names." },
  CONSUMER_GROUP_NOT_FOUND: { grpc: "NOT_FOUND",           status: 404, title: "No such consumer group",                help: "List the consumer groups of the service to see their names." },
  CONSUMER_GROUP_ACTIVE:    { grpc: "FAILED_PRECONDITION", status: 409, title: "The consumer group has members",        help: "Stop its consumers, and wait until its state is Empty." },
  PARTITION_LIMIT_REACHED:  { grpc: "RESOURCE_EXHAUSTED",  status: 409, title: "The service has too many partitions",   help: "Delete topics, or resize the service to a plan with more vCPUs." },
  NOTHING_PENDING:          { grpc: "FAILED_PRECONDITION", status: 409, title: "No update is pending",                  help: "There is nothing to apply. GET the service's maintenance to see its window and pending updates." },
  DELETION_PROTECTED:       { grpc: "FAILED_PRECONDITION", status: 409, title: "The service is protected from deletion",help: "PATCH deletion_protection to false first." },
  PASSWORD_NOT_KNOWN:       { grpc: "FAILED_PRECONDITION", status: 409, title: "The password was changed in the engine",help: "The platform does not have the current password. Set a new one with reset-password." },
  ENGINE_REFUSED:           { grpc: "FAILED_PRECONDITION", status: 422, title: "The engine refused the request",        help: "Correct the cause in the detail." },
  NOT_SUPPORTED:            { grpc: "FAILED_PRECONDITION", status: 422, title: "The engine does not support this",      help: "The catalog lists the features of each engine." },
  MACHINE_UNREACHABLE:      { grpc: "UNAVAILABLE",         status: 503, title: "The machine does not respond",          help: "The change may have been applied: read the object before you try again. The service's health shows when its machine is back." },
  NOT_ENOUGH_STORAGE:       { grpc: "FAILED_PRECONDITION", status: 409, title: "The other nodes have too little storage",help: "Delete data, or expand the storage of the service; then remove the node again." },
  STORAGE_FULL:             { grpc: "RESOURCE_EXHAUSTED",  status: 507, title: "The service's disk is full",            help: "Nothing was written. Delete data after POST enable-writes, or expand the storage; then send the request again." },
} as const satisfies Record<string, ErrorEntry>;
