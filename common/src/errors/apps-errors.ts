import type { ErrorEntry } from "./error-entry.ts";

/** Errors of apps and their sign-in. */
// biome-ignore format: a table, aligned so that it reads as one
export const appsErrors = {
  SMTP_REQUIRED:            { grpc: "INVALID_ARGUMENT",    status: 400, title: "A mail server is required",             help: "Sign-in sends mails, and the platform has no relay. Set smtp to a mail server of the app's owner." },
  APP_NOT_FOUND:            { grpc: "NOT_FOUND",           status: 404, title: "No such app",                           help: "It does not exist or belongs to another organization. List the apps to see their ids." },
  AUTH_NOT_ENABLED:         { grpc: "NOT_FOUND",           status: 404, title: "The app has no sign-in",                help: "Enable it with POST auth/enable." },
  ATTACHMENT_IN_USE:        { grpc: "FAILED_PRECONDITION", status: 409, title: "The attachment is in use",              help: "Detach it from the apps that the detail names. A PostgreSQL database that has an app's end users also needs POST auth/disable before that." },
  AUTH_ALREADY_ENABLED:     { grpc: "FAILED_PRECONDITION", status: 409, title: "The app has sign-in already",           help: "Change it with PATCH auth, or disable it with POST auth/disable." },
  AUTH_NOT_ACTIVE:          { grpc: "FAILED_PRECONDITION", status: 409, title: "The sign-in is not active",             help: "GET auth to see its status and failure reason." },
  USER_EXISTS:              { grpc: "ALREADY_EXISTS",      status: 409, title: "The user exists",                       help: "List the users with this address to see the id." },
  ATTACHMENT_NOT_POSTGRESQL: { grpc: "FAILED_PRECONDITION", status: 422, title: "The attachment is not PostgreSQL",     help: "The users of an app are stored in a PostgreSQL service. Attach one." },
  APP_NOT_HOSTED:           { grpc: "FAILED_PRECONDITION", status: 422, title: "The app is not hosted",                 help: "It runs outside of the platform. Create an app with an image_ref to run it on the platform." },
  HOSTING_UNAVAILABLE:      { grpc: "FAILED_PRECONDITION", status: 422, title: "Apps cannot be hosted here",             help: "An operator makes the node image of apps: holdfast images make apps." },
  ATTACHMENT_UNHEALTHY:     { grpc: "FAILED_PRECONDITION", status: 422, title: "The attachment is not healthy",         help: "Its service must be Running. GET the service to see its state." },
  CUSTOM_DOMAIN_NOT_VERIFIED: { grpc: "FAILED_PRECONDITION", status: 422, title: "The domain is not verified",          help: "The detail has the missing record. POST verify to the domain once its name servers have it." },
} as const satisfies Record<string, ErrorEntry>;
