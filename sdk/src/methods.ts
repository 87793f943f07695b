// Printed from the protos by `npm run generate`: each of these methods is one request.
import type {
  AlertRule,
  ApiKey,
  App,
  AppAuth,
  AppCredentials,
  AppDeployments,
  AppDomain,
  AppNodes,
  AppRegistry,
  Attachment,
  AuthClient,
  AuthClients,
  AuthEvent,
  AuthIdpProvider,
  AuthKeys,
  AuthSession,
  AuthSmtpTest,
  AuthTask,
  AuthUser,
  Backup,
  BackupKey,
  BackupSettings,
  Channel,
  Configuration,
  Connection,
  ConsumerGroup,
  CreatedApiKey,
  CreatedInferenceKey,
  CreatedToken,
  CreatedUser,
  CreatedWebhook,
  CurrentSession,
  Database,
  DatabasePassword,
  DatabaseUser,
  DeadMessage,
  DefaultChannel,
  Deployment,
  Drill,
  EnabledAuth,
  FilesConnection,
  FilesKey,
  FiringAlert,
  Health,
  Index,
  InferenceKey,
  InferenceProvider,
  InferenceSettings,
  InferenceUsage,
  Maintenance,
  ManagedService,
  Member,
  MetricExposition,
  MetricSample,
  Metrics,
  MetricsExport,
  MetricsExportTest,
  Operation,
  Organization,
  Pipeline,
  PipelineDetail,
  PipelineTemplate,
  Project,
  ProjectDrift,
  QueryStatisticsTask,
  Queue,
  QueueTask,
  ReplicationStatus,
  Role,
  RotatedAuthKey,
  RotatedSecret,
  RunningQueries,
  SchemaText,
  ScriptAssessment,
  ServiceNode,
  Session,
  SessionCode,
  SignalledQuery,
  Stack,
  StackMigration,
  StackTemplate,
  Task,
  TaskSummary,
  Token,
  Topic,
  UnsupportedFeatures,
  Upgrade,
  UpgradePreview,
  Webhook,
} from "./responses.ts";
import type {
  AlertRuleChange,
  AppChange,
  AuthChange,
  AuthClientChange,
  AuthIdpProviderChange,
  AuthUserFilter,
  BackupFilter,
  BackupSettingsChange,
  ChannelChange,
  ConsumerGroupReset,
  DatabaseUserChange,
  FilesServiceChange,
  FilesServiceFilter,
  InferenceKeyChange,
  InferenceProviderChange,
  InferenceSettingsChange,
  InferenceUsageQuery,
  MetricQuery,
  MetricsExportChange,
  NewAlertRule,
  NewApiKey,
  NewApp,
  NewAppDomain,
  NewAttachment,
  NewAuth,
  NewAuthClient,
  NewChannel,
  NewDatabaseUser,
  NewFilesKey,
  NewFilesService,
  NewInferenceKey,
  NewMetricsExport,
  NewNode,
  NewPipeline,
  NewQueue,
  NewService,
  NewSession,
  NewStack,
  NewToken,
  NewTopic,
  NewWebhook,
  ParameterChange,
  QueueChange,
  RestoreChoice,
  SampleFilter,
  ServiceChange,
  ServiceFilter,
  TopicChange,
  WebhookChange,
} from "./requests.ts";
import { type List, type ListOptions, listOf } from "./pages.ts";
import { ApiMethods, type CallOptions, pathOf } from "./transport.ts";

/** Alert rules on metrics of services, and firing alerts. */
export class AlertMethods extends ApiMethods {
  /** Creates a rule. A service has at most 50 rules, including the default ones. */
  createRule(serviceId: string, body: NewAlertRule, options?: CallOptions): Promise<AlertRule> {
    const path = pathOf("managed-services", serviceId, "alerts", "rules");
    return this.transport.request("POST", path, { ...options, body });
  }

  /** Lists the rules of a service with their states. */
  rules(serviceId: string, options?: ListOptions): List<AlertRule> {
    return listOf(this.transport, pathOf("managed-services", serviceId, "alerts", "rules"), "rules", options);
  }

  /** Returns a rule with its state. */
  getRule(serviceId: string, ruleId: string, options?: CallOptions): Promise<AlertRule> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "alerts", "rules", ruleId), options);
  }

  /** Changes a rule. A change of its condition resolves its alerts and restarts the evaluation. */
  updateRule(serviceId: string, ruleId: string, body: AlertRuleChange, options?: CallOptions): Promise<AlertRule> {
    const path = pathOf("managed-services", serviceId, "alerts", "rules", ruleId);
    return this.transport.request("PATCH", path, { ...options, body });
  }

  /** Deletes a rule and resolves its firing alert. */
  deleteRule(serviceId: string, ruleId: string, options?: CallOptions): Promise<void> {
    const path = pathOf("managed-services", serviceId, "alerts", "rules", ruleId);
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }

  /** Lists the firing alerts of the organization. */
  firing(options?: ListOptions): List<FiringAlert> {
    return listOf(this.transport, "/alerts/firing", "alerts", options);
  }

  /** Returns the channel of rules that name none. */
  defaultChannel(options?: CallOptions): Promise<DefaultChannel> {
    return this.transport.request("GET", "/alerts/default-channel", options);
  }

  /** Sets the channel of rules that name none; null for no channel. */
  setDefaultChannel(channelId: string | null, options?: CallOptions): Promise<DefaultChannel> {
    return this.transport.request("PUT", "/alerts/default-channel", { ...options, body: { channel_id: channelId } });
  }
}

/** API keys: credentials of the organization's programs. */
export class ApiKeys extends ApiMethods {
  /** Creates a key. Only this response has the secret. 403 for scopes that the caller lacks. */
  create(body: NewApiKey, options?: CallOptions): Promise<CreatedApiKey> {
    return this.transport.request("POST", "/api-keys", { ...options, body });
  }

  /** Lists the keys of the organization, without their secrets. */
  list(options?: ListOptions): List<ApiKey> {
    return listOf(this.transport, "/api-keys", "api_keys", options);
  }

  /** Deletes a key and the tokens that it created. They are refused immediately. */
  delete(id: string, options?: CallOptions): Promise<void> {
    return this.transport.request("DELETE", pathOf("api-keys", id), { ...options, absentIsSuccess: true });
  }

  /** Creates a new secret for the same id. The old one stays valid for overlap_hours, 0 by default. */
  rotate(id: string, overlapHours?: number, options?: CallOptions): Promise<CreatedApiKey> {
    const path = pathOf("api-keys", id, "rotate");
    return this.transport.request("POST", path, { ...options, body: { overlap_hours: overlapHours } });
  }
}

/** Apps of the organization, with their attached databases and files services. */
export class AppMethods extends ApiMethods {
  /**
   * Lists the newest 20 deployments of a hosted app, and those that its machines still run, newest first; none for an
   * app that runs outside of the platform.
   */
  deployments(appId: string, options?: CallOptions): Promise<AppDeployments> {
    return this.transport.request("GET", pathOf("app-services", appId, "deployments"), options);
  }

  /**
   * Deploys an earlier deployment again: the given one, or the one before the one that serves. Image, variables, port
   * and command are the earlier ones, also if its tag has another image now. Without an id, 409 wrong_state right after
   * a failed deployment, which has changed nothing.
   */
  rollBack(appId: string, deploymentId?: string, options?: CallOptions): Promise<App> {
    const path = pathOf("app-services", appId, "rollback");
    return this.transport.request("POST", path, { ...options, body: { deployment_id: deploymentId } });
  }

  /** Stops the programs of a hosted app: clients get 503. Its machines and its name remain. */
  stop(appId: string, options?: CallOptions): Promise<App> {
    return this.transport.request("POST", pathOf("app-services", appId, "stop"), options);
  }

  /** Starts a stopped app with the deployment that it had. */
  start(appId: string, options?: CallOptions): Promise<App> {
    return this.transport.request("POST", pathOf("app-services", appId, "start"), options);
  }

  /** Deploys what serves again, without a failed request; before a first deployment has served, the one that failed. */
  restart(appId: string, options?: CallOptions): Promise<App> {
    return this.transport.request("POST", pathOf("app-services", appId, "restart"), options);
  }

  /**
   * Returns the registry to which the organization pushes the images of its apps. Clients sign in with an API key, or
   * with the user name "token" and a token, of the scope apps:write. 422 hosting_unavailable without a registry.
   */
  registry(options?: CallOptions): Promise<AppRegistry> {
    return this.transport.request("GET", "/app-registry", options);
  }

  /**
   * Gives a hosted app an address that belongs to it alone, until it is released or the app is deleted: the name of the
   * app resolves to it, and requests at it reach the app with any host. An app that has one keeps it. 409
   * no_floating_ip if none is free.
   */
  assignFloatingIp(appId: string, options?: CallOptions): Promise<App> {
    return this.transport.request("PUT", pathOf("app-services", appId, "floating-ip"), options);
  }

  /** Releases the app's address, which another app may get; without one this has no effect. */
  releaseFloatingIp(appId: string, options?: CallOptions): Promise<void> {
    const path = pathOf("app-services", appId, "floating-ip");
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }

  /**
   * Returns the user name and the password of a hosted app's login form. Each call is audited. 409 wrong_state without
   * a form.
   */
  credentials(appId: string, options?: CallOptions): Promise<AppCredentials> {
    return this.transport.request("GET", pathOf("app-services", appId, "credentials"), options);
  }

  /** Lists the machines of a hosted app; none for others. */
  nodes(appId: string, options?: CallOptions): Promise<AppNodes> {
    return this.transport.request("GET", pathOf("app-services", appId, "nodes"), options);
  }

  /**
   * Creates an app. With `image_ref` it runs on machines of the platform: the response is 202, and the operation ends
   * once the app serves. Without it the app runs outside of the platform, and its status is Running immediately. 409
   * for a name in use.
   */
  create(body: NewApp, options?: CallOptions): Promise<App> {
    return this.transport.request("POST", "/app-services", { ...options, body });
  }

  list(options?: ListOptions): List<App> {
    return listOf(this.transport, "/app-services", "apps", options);
  }

  get(appId: string, options?: CallOptions): Promise<App> {
    return this.transport.request("GET", pathOf("app-services", appId), options);
  }

  /**
   * Changes an app. A change of a hosted app's image, variables, port, command, health check path, start timeout or
   * drain time is a deployment: the response is 202, and the release before serves until the new one is ready on all
   * machines. If it fails, the app has the settings of what serves again. 409 operation_in_progress during another.
   */
  update(appId: string, body: AppChange, options?: CallOptions): Promise<App> {
    return this.transport.request("PATCH", pathOf("app-services", appId), { ...options, body });
  }

  /**
   * Attaches a database of a PostgreSQL service, or a files service with a separate key, which also requires the scope
   * files:write. For an app without an image, the response has the variables of all attached files services. To a
   * hosted app also databases of other engines, each with a separate user, which requires the scope services:write, and
   * other hosted apps: it is deployed again with their variables, by the operation in the response. 404
   * database_not_found for a database that the service does not have. 422 attachment_not_postgresql for another engine.
   */
  attach(appId: string, body: NewAttachment, options?: CallOptions): Promise<Attachment> {
    return this.transport.request("POST", pathOf("app-services", appId, "attachments"), { ...options, body });
  }

  /**
   * Detaches a database or a files service, whose key ends: its requests are refused within 5 s. 409 attachment_in_use
   * while a database has the app's end users.
   */
  detach(appId: string, attachmentId: string, options?: CallOptions): Promise<void> {
    const path = pathOf("app-services", appId, "attachments", attachmentId);
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }

  /** Adds a domain, which can be used once it is verified. 409 name_taken when the app has it already. */
  addDomain(appId: string, body: NewAppDomain, options?: CallOptions): Promise<AppDomain> {
    return this.transport.request("POST", pathOf("app-services", appId, "domains"), { ...options, body });
  }

  /**
   * Verifies a domain by the TXT record in `verification`. 422 custom_domain_not_verified when DNS does not have it,
   * 409 name_taken when another app has verified the domain.
   */
  verifyDomain(appId: string, domainId: string, options?: CallOptions): Promise<AppDomain> {
    return this.transport.request("POST", pathOf("app-services", appId, "domains", domainId, "verify"), options);
  }

  /** Deletes a domain. 409 wrong_state while the app's issuer uses it. */
  deleteDomain(appId: string, domainId: string, options?: CallOptions): Promise<void> {
    const path = pathOf("app-services", appId, "domains", domainId);
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }
}

/** Sign-in for an app: issuer, clients, signing keys and end users. */
export class Auth extends ApiMethods {
  /**
   * Starts to create the issuer, which is ready when its status is Active. After Failed or Disabled it keeps its id,
   * and the domain can be chosen again. 409 auth_already_enabled; 422 attachment_not_postgresql, attachment_unhealthy,
   * custom_domain_not_verified and target_not_allowed; 400 smtp_required.
   */
  enable(appId: string, body: NewAuth, options?: CallOptions): Promise<EnabledAuth> {
    return this.transport.request("POST", pathOf("app-services", appId, "auth", "enable"), { ...options, body });
  }

  get(appId: string, options?: CallOptions): Promise<AppAuth> {
    return this.transport.request("GET", pathOf("app-services", appId, "auth"), options);
  }

  /** Changes settings. Another mail server needs its password again. */
  update(appId: string, body: AuthChange, options?: CallOptions): Promise<AppAuth> {
    return this.transport.request("PATCH", pathOf("app-services", appId, "auth"), { ...options, body });
  }

  /** Disables sign-in: the issuer responds with 404. Keys and end users stay. */
  disable(appId: string, options?: CallOptions): Promise<AppAuth> {
    return this.transport.request("POST", pathOf("app-services", appId, "auth", "disable"), options);
  }

  /**
   * Rotates the signing key: the reserve key in the JWKS signs from now on, and tokens of the former key are valid
   * until it retires. `emergency` removes the former key and the reserve key immediately, which invalidates all their
   * tokens.
   */
  rotateKey(appId: string, emergency?: boolean, options?: CallOptions): Promise<RotatedAuthKey> {
    const path = pathOf("app-services", appId, "auth", "rotate-key");
    return this.transport.request("POST", path, { ...options, body: { emergency } });
  }

  /** Lists current and former signing keys, newest first, at most 20. */
  keys(appId: string, options?: CallOptions): Promise<AuthKeys> {
    return this.transport.request("GET", pathOf("app-services", appId, "auth", "keys"), options);
  }

  /** Revokes a session of an end user and its refresh tokens. The call also succeeds for an unknown session. */
  revokeSession(appId: string, sessionId: string, options?: CallOptions): Promise<AuthTask> {
    const path = pathOf("app-services", appId, "auth", "sessions", sessionId, "revoke");
    return this.transport.request("POST", path, options);
  }

  /** Erases an end user from all tables. The task's result is `{erased}`, false for an unknown user. */
  eraseUser(appId: string, email?: string, userId?: string, options?: CallOptions): Promise<AuthTask> {
    const path = pathOf("app-services", appId, "auth", "users", "delete");
    return this.transport.request("POST", path, { ...options, body: { email, user_id: userId } });
  }

  /** Erases an end user by the e-mail address or id in the path. */
  deleteUser(appId: string, emailOrUserId: string, options?: CallOptions): Promise<AuthTask> {
    return this.transport.request("DELETE", pathOf("app-services", appId, "auth", "users", emailOrUserId), options);
  }

  /** Creates a user before the first sign-in, which apps with closed sign-up need. 409 user_exists. */
  createUser(appId: string, email: string, options?: CallOptions): Promise<AuthUser> {
    const path = pathOf("app-services", appId, "auth", "users");
    return this.transport.request("POST", path, { ...options, body: { email } });
  }

  users(appId: string, filter?: AuthUserFilter, options?: ListOptions): List<AuthUser> {
    return listOf(this.transport, pathOf("app-services", appId, "auth", "users"), "users", options, { ...filter });
  }

  sessions(appId: string, userId: string, options?: ListOptions): List<AuthSession> {
    const path = pathOf("app-services", appId, "auth", "users", userId, "sessions");
    return listOf(this.transport, path, "sessions", options);
  }

  /** Lists events of end users of the last 400 days, newest first. */
  events(appId: string, options?: ListOptions): List<AuthEvent> {
    return listOf(this.transport, pathOf("app-services", appId, "auth", "events"), "events", options);
  }

  /** Creates a client; an app has at most 20. Only this response has the secret of a confidential client. */
  createClient(appId: string, body: NewAuthClient, options?: CallOptions): Promise<AuthClient> {
    return this.transport.request("POST", pathOf("app-services", appId, "auth", "clients"), { ...options, body });
  }

  clients(appId: string, options?: CallOptions): Promise<AuthClients> {
    return this.transport.request("GET", pathOf("app-services", appId, "auth", "clients"), options);
  }

  updateClient(appId: string, clientId: string, body: AuthClientChange, options?: CallOptions): Promise<AuthClient> {
    const path = pathOf("app-services", appId, "auth", "clients", clientId);
    return this.transport.request("PATCH", path, { ...options, body });
  }

  deleteClient(appId: string, clientId: string, options?: CallOptions): Promise<void> {
    const path = pathOf("app-services", appId, "auth", "clients", clientId);
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }

  /** Creates a new secret, which only this response has. The former one is refused immediately. */
  rotateClientSecret(appId: string, clientId: string, options?: CallOptions): Promise<AuthClient> {
    const path = pathOf("app-services", appId, "auth", "clients", clientId, "rotate-secret");
    return this.transport.request("POST", path, options);
  }

  /**
   * Configures an identity provider that end users may sign in with: `google`, or `oidc` for another OpenID Connect
   * provider. 422 target_not_allowed for an address that is not permitted.
   */
  putProvider(
    appId: string,
    provider: string,
    body: AuthIdpProviderChange,
    options?: CallOptions,
  ): Promise<AuthIdpProvider> {
    const path = pathOf("app-services", appId, "auth", "idp-providers", provider);
    return this.transport.request("PUT", path, { ...options, body });
  }

  /** Deletes an identity provider. Its users sign in by mail from then on. */
  deleteProvider(appId: string, provider: string, options?: CallOptions): Promise<void> {
    const path = pathOf("app-services", appId, "auth", "idp-providers", provider);
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }

  /** Sends a test mail through the configured mail server. */
  testSmtp(appId: string, to: string, options?: CallOptions): Promise<AuthSmtpTest> {
    const path = pathOf("app-services", appId, "auth", "smtp", "test");
    return this.transport.request("POST", path, { ...options, body: { to } });
  }
}

/** Backups of a service, also of a deleted one. */
export class BackupMethods extends ApiMethods {
  /** Lists the backups of a service, newest first. Manual backups of a deleted service are listed under its id. */
  list(serviceId: string, filter?: BackupFilter, options?: ListOptions): List<Backup> {
    return listOf(this.transport, pathOf("managed-services", serviceId, "backups"), "backups", options, { ...filter });
  }

  /** Returns a backup. */
  get(serviceId: string, backupId: string, options?: CallOptions): Promise<Backup> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "backups", backupId), options);
  }

  /** Deletes a finished manual backup. Automated backups are deleted at the end of their retention. */
  delete(serviceId: string, backupId: string, options?: CallOptions): Promise<void> {
    const path = pathOf("managed-services", serviceId, "backups", backupId);
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }

  /** Verifies a completed backup by reading and decrypting all of it. The operation in operation_id has the result. */
  verify(serviceId: string, backupId: string, options?: CallOptions): Promise<Backup> {
    const path = pathOf("managed-services", serviceId, "backups", backupId, "verify");
    return this.transport.request("POST", path, options);
  }

  /** Cancels an unfinished backup, which becomes failed with the reason "cancelled". */
  cancel(serviceId: string, backupId: string, options?: CallOptions): Promise<Backup> {
    const path = pathOf("managed-services", serviceId, "backups", backupId, "cancel");
    return this.transport.request("POST", path, options);
  }

  /** Creates a service with the data of a completed backup. The source is not changed. */
  restore(serviceId: string, backupId: string, body: RestoreChoice, options?: CallOptions): Promise<ManagedService> {
    const path = pathOf("managed-services", serviceId, "backups", backupId, "restore");
    return this.transport.request("POST", path, { ...options, body });
  }

  /** Returns the time of the daily backup and the retention of automated backups. */
  settings(serviceId: string, options?: CallOptions): Promise<BackupSettings> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "backup-settings"), options);
  }

  /** Changes the time of the daily backup and the retention. A shorter retention applies to existing backups too. */
  updateSettings(serviceId: string, body: BackupSettingsChange, options?: CallOptions): Promise<BackupSettings> {
    const path = pathOf("managed-services", serviceId, "backup-settings");
    return this.transport.request("PATCH", path, { ...options, body });
  }

  /** Creates a new encryption key for the next backups. Existing backups keep their keys and can still be restored. */
  rotateKey(serviceId: string, options?: CallOptions): Promise<BackupKey> {
    return this.transport.request("POST", pathOf("managed-services", serviceId, "backups", "rotate-key"), options);
  }

  /**
   * Tests the backups of a service. The newest backup, and a random point in time where the engine supports that, are
   * restored on a machine without clients and checked; the machine is deleted afterwards. Drills also run automatically
   * once a week.
   */
  drill(serviceId: string, options?: CallOptions): Promise<Drill> {
    return this.transport.request("POST", pathOf("managed-services", serviceId, "backups", "drill"), options);
  }

  /** Lists the newest 20 drills of a service, newest first. */
  drills(serviceId: string, options?: ListOptions): List<Drill> {
    return listOf(this.transport, pathOf("managed-services", serviceId, "backups", "drills"), "drills", options);
  }
}

/** Notification channels of alerts: HTTP endpoints and e-mail addresses. */
export class ChannelMethods extends ApiMethods {
  /**
   * Creates a channel; an organization has at most 20. Only this response has the signing secret of a webhook. An
   * e-mail address first receives a confirmation link, and alerts after its confirmation.
   */
  create(body: NewChannel, options?: CallOptions): Promise<Channel> {
    return this.transport.request("POST", "/alerts/channels", { ...options, body });
  }

  /** Lists the channels of the organization, without their secrets. */
  list(options?: ListOptions): List<Channel> {
    return listOf(this.transport, "/alerts/channels", "channels", options);
  }

  /** Returns a channel, without its secret. */
  get(id: string, options?: CallOptions): Promise<Channel> {
    return this.transport.request("GET", pathOf("alerts", "channels", id), options);
  }

  /** Changes a channel; its type is fixed. A new e-mail address must be confirmed. */
  update(id: string, body: ChannelChange, options?: CallOptions): Promise<Channel> {
    return this.transport.request("PATCH", pathOf("alerts", "channels", id), { ...options, body });
  }

  /** Deletes a channel. Refused while a rule uses it, or while it is the default channel. */
  delete(id: string, options?: CallOptions): Promise<void> {
    return this.transport.request("DELETE", pathOf("alerts", "channels", id), { ...options, absentIsSuccess: true });
  }
}

/** Parameters of a service's engine. */
export class Configurations extends ApiMethods {
  /** Returns all parameters with their values, defaults and states. */
  get(serviceId: string, options?: CallOptions): Promise<Configuration> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "configuration"), options);
  }

  /**
   * Changes parameters. One invalid value rejects the whole request; null resets a parameter to its default. Parameters
   * that need a restart take effect with the next one. When the engine has not applied the values within 15 s, the
   * response is 202 with the operation; a later change replaces that operation.
   */
  update(serviceId: string, parameters: ParameterChange, options?: CallOptions): Promise<Configuration> {
    const path = pathOf("managed-services", serviceId, "configuration");
    return this.transport.request("PATCH", path, { ...options, body: { parameters } });
  }
}

/** Consumer groups in a service's engine. */
export class ConsumerGroups extends ApiMethods {
  /** Lists the consumer groups, by name, with their lag. 409 while the service does not run. */
  list(serviceId: string, options?: ListOptions): List<ConsumerGroup> {
    return listOf(this.transport, pathOf("managed-services", serviceId, "consumer-groups"), "consumer_groups", options);
  }

  /** Returns a consumer group with its offsets by partition. */
  get(serviceId: string, name: string, options?: CallOptions): Promise<ConsumerGroup> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "consumer-groups", name), options);
  }

  /** Sets the offsets of all partitions of a topic. 409 while the group has members. */
  reset(serviceId: string, name: string, body: ConsumerGroupReset, options?: CallOptions): Promise<ConsumerGroup> {
    const path = pathOf("managed-services", serviceId, "consumer-groups", name, "offsets");
    return this.transport.request("POST", path, { ...options, body });
  }

  /** Deletes a consumer group with its offsets. 409 while it has members. */
  delete(serviceId: string, name: string, options?: CallOptions): Promise<void> {
    const path = pathOf("managed-services", serviceId, "consumer-groups", name);
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }
}

/** Databases in a service's engine. */
export class DatabaseMethods extends ApiMethods {
  /** Lists the databases of the engine and those in creation, by name. 409 while the service does not run. */
  list(serviceId: string, options?: ListOptions): List<Database> {
    return listOf(this.transport, pathOf("managed-services", serviceId, "databases"), "databases", options);
  }
}

/** Users in a service's engine, also those created in SQL. */
export class DatabaseUserMethods extends ApiMethods {
  /** Lists the users of the engine and those in creation, by name. 409 while the service does not run. */
  list(serviceId: string, options?: ListOptions): List<DatabaseUser> {
    return listOf(this.transport, pathOf("managed-services", serviceId, "database-users"), "users", options);
  }

  /**
   * Creates a user; reveal-password returns its password. When the engine has not created it within 15 s, the response
   * is 202 with the operation that does.
   */
  create(serviceId: string, body: NewDatabaseUser, options?: CallOptions): Promise<DatabaseUser> {
    const path = pathOf("managed-services", serviceId, "database-users");
    return this.transport.request("POST", path, { ...options, body });
  }

  /** Returns a user of the engine, or one in creation. 409 while the service does not run. */
  get(serviceId: string, username: string, options?: CallOptions): Promise<DatabaseUser> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "database-users", username), options);
  }

  /**
   * Changes whether a user may consume logical replication slots. When the engine has not applied it within 15 s, the
   * response is 202 with the operation that does.
   */
  update(serviceId: string, username: string, body: DatabaseUserChange, options?: CallOptions): Promise<DatabaseUser> {
    const path = pathOf("managed-services", serviceId, "database-users", username);
    return this.transport.request("PATCH", path, { ...options, body });
  }

  /** Returns the current password. 409 when it was changed in SQL; reset it then. */
  revealPassword(serviceId: string, username: string, options?: CallOptions): Promise<DatabasePassword> {
    const path = pathOf("managed-services", serviceId, "database-users", username, "reveal-password");
    return this.transport.request("POST", path, options);
  }

  /**
   * Sets a new random password; open sessions stay. A user with role "custom" keeps its privileges, and only this
   * response has its password. When the engine has not applied it within 15 s, the response is 202: the new password is
   * valid once the operation is completed, and the former one until then. If the operation fails, the new password is
   * invalid.
   */
  resetPassword(serviceId: string, username: string, options?: CallOptions): Promise<DatabasePassword> {
    const path = pathOf("managed-services", serviceId, "database-users", username, "reset-password");
    return this.transport.request("POST", path, options);
  }
}

/** Exports of metrics and logs to monitoring systems. */
export class ExportMethods extends ApiMethods {
  /**
   * Creates an integration, which pushes new metrics and logs to the destination. A service has at most one integration
   * per destination type, and an organization at most one global integration per type and 100 in total. Logs need the
   * scope services:data, a global integration org:write.
   */
  create(body: NewMetricsExport, options?: CallOptions): Promise<MetricsExport> {
    return this.transport.request("POST", "/api/v1/metrics-exports", { ...options, body });
  }

  /** Returns an integration with its state. */
  get(id: string, options?: CallOptions): Promise<MetricsExport> {
    return this.transport.request("GET", pathOf("api", "v1", "metrics-exports", id), options);
  }

  /**
   * Changes the fields that are present. The configuration is merged by key, and null removes an optional key. A new
   * target needs the secrets again; a new destination type needs a complete configuration.
   */
  update(id: string, body: MetricsExportChange, options?: CallOptions): Promise<MetricsExport> {
    return this.transport.request("PUT", pathOf("api", "v1", "metrics-exports", id), { ...options, body });
  }

  /** Deletes an integration; unsent data are discarded. */
  delete(id: string, options?: CallOptions): Promise<void> {
    const path = pathOf("api", "v1", "metrics-exports", id);
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }

  /** Pauses an integration; unsent data are stored for 24 hours. */
  disable(id: string, options?: CallOptions): Promise<MetricsExport> {
    return this.transport.request("POST", pathOf("api", "v1", "metrics-exports", id, "disable"), options);
  }

  /** Resumes an integration where it stopped, and resets its failures. */
  enable(id: string, options?: CallOptions): Promise<MetricsExport> {
    return this.transport.request("POST", pathOf("api", "v1", "metrics-exports", id, "enable"), options);
  }

  /** Tests the connection to the destination within 10 s, without data. At most 10 tests per minute. */
  test(id: string, options?: CallOptions): Promise<MetricsExportTest> {
    return this.transport.request("POST", pathOf("api", "v1", "metrics-exports", id, "test"), options);
  }
}

/** Files services: object storage with the S3 API, one bucket each. */
export class FilesMethods extends ApiMethods {
  /**
   * Creates a files service with one empty bucket. The response has the status Pending; the operation has the progress.
   * It has no key yet.
   */
  create(body: NewFilesService, options?: CallOptions): Promise<ManagedService> {
    return this.transport.request("POST", "/files-services", { ...options, body });
  }

  /** Lists the files services of the organization, oldest first. */
  list(filter?: FilesServiceFilter, options?: ListOptions): List<ManagedService> {
    return listOf(this.transport, "/files-services", "services", options, { ...filter });
  }

  /** Returns a files service with its operation in progress and its health. */
  get(id: string, options?: CallOptions): Promise<ManagedService> {
    return this.transport.request("GET", pathOf("files-services", id), options);
  }

  /**
   * Changes a files service. A new plan or more storage starts an operation, and the response is 202 while it is in
   * progress. A new allow-list takes effect within 5 s, for open connections too.
   */
  update(id: string, body: FilesServiceChange, options?: CallOptions): Promise<ManagedService> {
    return this.transport.request("PATCH", pathOf("files-services", id), { ...options, body });
  }

  /** Starts a files service with the status Stopped or Error, with its data and keys. */
  start(id: string, options?: CallOptions): Promise<ManagedService> {
    return this.transport.request("POST", pathOf("files-services", id, "start"), options);
  }

  /** Stops the server. Data and keys stay. */
  stop(id: string, options?: CallOptions): Promise<ManagedService> {
    return this.transport.request("POST", pathOf("files-services", id, "stop"), options);
  }

  /** Restarts the server cleanly. */
  restart(id: string, options?: CallOptions): Promise<ManagedService> {
    return this.transport.request("POST", pathOf("files-services", id, "restart"), options);
  }

  /** Changes the plan. The server is restarted once with the settings of the new plan. */
  resize(id: string, planName: string, options?: CallOptions): Promise<ManagedService> {
    const path = pathOf("files-services", id, "resize");
    return this.transport.request("POST", path, { ...options, body: { plan_name: planName } });
  }

  /** Increases the storage without a restart. Storage cannot shrink. */
  expandStorage(id: string, storageSizeGb: number, options?: CallOptions): Promise<ManagedService> {
    const path = pathOf("files-services", id, "storage", "expand");
    return this.transport.request("POST", path, { ...options, body: { storage_size_gb: storageSizeGb } });
  }

  /**
   * Creates a deleted files service again, on its retained disk, with its objects and keys. Keys of attachments that
   * ended after the deletion are not created.
   */
  undelete(id: string, name?: string, options?: CallOptions): Promise<ManagedService> {
    return this.transport.request("POST", pathOf("files-services", id, "undelete"), { ...options, body: { name } });
  }

  /** Returns everything that a client needs to connect, except a key. */
  connection(id: string, options?: CallOptions): Promise<FilesConnection> {
    return this.transport.request("GET", pathOf("files-services", id, "connection"), options);
  }

  /** Lists the keys of a files service by access key id, without their secrets. */
  keys(serviceId: string, options?: ListOptions): List<FilesKey> {
    return listOf(this.transport, pathOf("files-services", serviceId, "keys"), "keys", options);
  }

  /**
   * Creates a pair of an access key id and a secret. The response has the secret, which no later call returns. The pair
   * is accepted within 5 s.
   */
  createKey(serviceId: string, body: NewFilesKey, options?: CallOptions): Promise<FilesKey> {
    return this.transport.request("POST", pathOf("files-services", serviceId, "keys"), { ...options, body });
  }

  /** Revokes a key: within 5 s its requests are refused. */
  deleteKey(serviceId: string, keyId: string, options?: CallOptions): Promise<void> {
    const path = pathOf("files-services", serviceId, "keys", keyId);
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }
}

/** Health of services: the worst result of their checks, and its history. */
export class HealthMethods extends ApiMethods {
  /** Returns the current health of a service: the worst result of its checks. */
  get(serviceId: string, options?: CallOptions): Promise<Health> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "health"), options);
  }
}

/** Indices of documents in a service's engine. */
export class Indices extends ApiMethods {
  /** Lists the indices of the users, by name. 409 while the service does not run. */
  list(serviceId: string, options?: ListOptions): List<Index> {
    return listOf(this.transport, pathOf("managed-services", serviceId, "indices"), "indices", options);
  }

  /** Deletes an index with its documents. */
  delete(serviceId: string, name: string, options?: CallOptions): Promise<void> {
    const path = pathOf("managed-services", serviceId, "indices", name);
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }
}

/** Language models of several providers behind one endpoint: providers, budgets, keys and usage. */
export class InferenceMethods extends ApiMethods {
  /**
   * Configures or changes a model provider; omitted fields stay. The API key is stored encrypted and never returned.
   */
  putProvider(orgId: string, body: InferenceProviderChange, options?: CallOptions): Promise<InferenceProvider> {
    const path = pathOf("organizations", orgId, "inference", "providers");
    return this.transport.request("PUT", path, { ...options, body });
  }

  /** Deletes a provider and its key. Its usage stays. */
  deleteProvider(orgId: string, provider: string, options?: CallOptions): Promise<void> {
    const path = pathOf("organizations", orgId, "inference", "providers", provider);
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }

  /** Sets limits and rules; omitted fields stay. The first call requires monthly_cost_limit_cents. */
  putSettings(orgId: string, body: InferenceSettingsChange, options?: CallOptions): Promise<InferenceSettings> {
    return this.transport.request("PUT", pathOf("organizations", orgId, "inference", "settings"), { ...options, body });
  }

  /** Returns limits, rules and the usage of the month. 404 before they are set. */
  settings(orgId: string, options?: CallOptions): Promise<InferenceSettings> {
    return this.transport.request("GET", pathOf("organizations", orgId, "inference", "settings"), options);
  }

  /** Creates a key for an application. Only this response has its secret. */
  createKey(orgId: string, body: NewInferenceKey, options?: CallOptions): Promise<CreatedInferenceKey> {
    return this.transport.request("POST", pathOf("organizations", orgId, "inference", "keys"), { ...options, body });
  }

  /** Lists the keys of the organization, without their secrets. */
  keys(orgId: string, options?: ListOptions): List<InferenceKey> {
    return listOf(this.transport, pathOf("organizations", orgId, "inference", "keys"), "keys", options);
  }

  /** Returns a key, without its secret. */
  getKey(orgId: string, id: string, options?: CallOptions): Promise<InferenceKey> {
    return this.transport.request("GET", pathOf("organizations", orgId, "inference", "keys", id), options);
  }

  /** Changes the fields that are present; null removes a limit or the expiry. */
  updateKey(orgId: string, id: string, body: InferenceKeyChange, options?: CallOptions): Promise<InferenceKey> {
    const path = pathOf("organizations", orgId, "inference", "keys", id);
    return this.transport.request("PATCH", path, { ...options, body });
  }

  /** Deletes a key, which is refused immediately. Its usage stays. */
  deleteKey(orgId: string, id: string, options?: CallOptions): Promise<void> {
    const path = pathOf("organizations", orgId, "inference", "keys", id);
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }

  /** Creates a new secret for the same id and limits. The old one is refused immediately. */
  rotateKey(orgId: string, id: string, options?: CallOptions): Promise<CreatedInferenceKey> {
    return this.transport.request("POST", pathOf("organizations", orgId, "inference", "keys", id, "rotate"), options);
  }

  /**
   * Returns the usage by model or by key, at most 5 s old: the 1,000 items with the highest cost, and the total of all.
   */
  usage(orgId: string, filter: InferenceUsageQuery, options?: CallOptions): Promise<InferenceUsage> {
    const path = pathOf("organizations", orgId, "inference", "usage");
    return this.transport.request("GET", path, { ...options, query: { ...filter } });
  }
}

/** Users of an organization. */
export class Members extends ApiMethods {
  /** Lists the members of an organization with their roles. */
  list(orgId: string, options?: ListOptions): List<Member> {
    return listOf(this.transport, pathOf("organizations", orgId, "members"), "members", options);
  }

  /**
   * Adds a user that this organization created, or that shares another organization with the caller. Members cannot
   * grant roles above their own.
   */
  add(orgId: string, userId: string, role: Role, options?: CallOptions): Promise<Member> {
    const path = pathOf("organizations", orgId, "members");
    return this.transport.request("POST", path, { ...options, body: { user_id: userId, role } });
  }

  /** Changes the role of a member. 409 for the last owner. */
  update(orgId: string, userId: string, role: Role, options?: CallOptions): Promise<Member> {
    const path = pathOf("organizations", orgId, "members", userId);
    return this.transport.request("PATCH", path, { ...options, body: { role } });
  }

  /** Removes a member. Members may leave themselves; removing others needs org:write. 409 for the last owner. */
  remove(orgId: string, userId: string, options?: CallOptions): Promise<void> {
    const path = pathOf("organizations", orgId, "members", userId);
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }
}

/** Metrics of services' machines and engines, sampled every 15 s. The catalog lists all metrics. */
export class MetricMethods extends ApiMethods {
  /**
   * Returns metrics of a service's nodes, sampled every 15 s. Intervals without samples have no points, so a gap is
   * never shown as zero.
   */
  get(serviceId: string, filter: MetricQuery, options?: CallOptions): Promise<Metrics> {
    const path = pathOf("managed-services", serviceId, "metrics");
    return this.transport.request("GET", path, { ...options, query: { ...filter } });
  }

  /** Lists samples of the last 24 hours, oldest first for each node. Late samples are listed when they arrive. */
  samples(serviceId: string, filter: SampleFilter, options?: ListOptions): List<MetricSample> {
    const path = pathOf("managed-services", serviceId, "metrics", "samples");
    return listOf(this.transport, path, "samples", options, { ...filter });
  }

  /**
   * Returns the newest sample of each node of a service in the Prometheus text format. Samples older than 60 s are left
   * out.
   */
  export(serviceId: string, options?: CallOptions): Promise<MetricExposition> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "metrics", "export"), options);
  }

  /**
   * Returns metrics of the responding controller in the Prometheus text format: durations of calls, reconciles and etcd
   * requests, queue sizes, agent sessions, and the lag of the history. For platform operators; each controller has its
   * own metrics.
   */
  exportPlatform(options?: CallOptions): Promise<MetricExposition> {
    return this.transport.request("GET", "/metrics/platform", options);
  }

  /**
   * Returns the newest samples of all services of the organization that the credential may access, in the Prometheus
   * text format.
   */
  exportAll(options?: CallOptions): Promise<MetricExposition> {
    return this.transport.request("GET", "/metrics", options);
  }
}

/** Nodes of a service; `services.nodes` lists them. */
export class NodeMethods extends ApiMethods {
  /**
   * Adds a replica, which copies the primary's data and then follows it by streaming replication, or several by one
   * operation. A service has at most 5 nodes. Members that elect their leader join one after another; such a service
   * has 1, 3, 4 or 5 nodes, so one with a single node grows by two. Returns the first of the new nodes.
   */
  add(serviceId: string, body: NewNode, options?: CallOptions): Promise<ServiceNode> {
    return this.transport.request("POST", pathOf("managed-services", serviceId, "nodes"), { ...options, body });
  }

  /** Returns a node. */
  get(serviceId: string, nodeId: string, options?: CallOptions): Promise<ServiceNode> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "nodes", nodeId), options);
  }

  /**
   * Removes a replica with its machine and data. The primary can be removed after a switchover, or with the service.
   */
  remove(serviceId: string, nodeId: string, options?: CallOptions): Promise<ServiceNode> {
    return this.transport.request("DELETE", pathOf("managed-services", serviceId, "nodes", nodeId), options);
  }

  /** Returns the replication status of a node, queried from the node and the primary; takes up to 3 s. */
  status(serviceId: string, nodeId: string, options?: CallOptions): Promise<ReplicationStatus> {
    const path = pathOf("managed-services", serviceId, "nodes", nodeId, "replication-status");
    return this.transport.request("GET", path, options);
  }

  /**
   * Makes a replica the primary by a switchover: the primary stops, the replica receives its last writes and is
   * promoted, and the former primary follows it. Writes are interrupted for less than a second.
   */
  failover(serviceId: string, nodeId: string, options?: CallOptions): Promise<Operation> {
    return this.transport.request("POST", pathOf("managed-services", serviceId, "nodes", nodeId, "failover"), options);
  }
}

/** Operations: changes that take time, with steps, progress and outcome. */
export class Operations extends ApiMethods {
  /** Returns an operation, also after its end. */
  get(id: string, options?: CallOptions): Promise<Operation> {
    return this.transport.request("GET", pathOf("operations", id), options);
  }

  /** Lists the operations of a service, newest first. */
  list(serviceId: string, options?: ListOptions): List<Operation> {
    return listOf(this.transport, pathOf("managed-services", serviceId, "operations"), "operations", options);
  }
}

/** Organizations that the caller belongs to. */
export class Organizations extends ApiMethods {
  /**
   * Creates an organization, with the caller as its owner. Only users can create organizations, not keys and tokens.
   */
  create(name: string, options?: CallOptions): Promise<Organization> {
    return this.transport.request("POST", "/organizations", { ...options, body: { name } });
  }

  /** Lists the organizations of the caller. */
  list(options?: ListOptions): List<Organization> {
    return listOf(this.transport, "/organizations", "organizations", options);
  }

  /** Returns an organization with its quota and usage. */
  get(orgId: string, options?: CallOptions): Promise<Organization> {
    return this.transport.request("GET", pathOf("organizations", orgId), options);
  }

  /** Renames an organization. */
  rename(orgId: string, name: string, options?: CallOptions): Promise<Organization> {
    return this.transport.request("PATCH", pathOf("organizations", orgId), { ...options, body: { name } });
  }

  /** Deletes an organization with its keys, tokens, webhooks and memberships. 409 while it has services. */
  delete(orgId: string, options?: CallOptions): Promise<void> {
    return this.transport.request("DELETE", pathOf("organizations", orgId), { ...options, absentIsSuccess: true });
  }
}

/** Pipelines: several database services that are created from a template and used together. */
export class PipelineMethods extends ApiMethods {
  /** Lists the newest version of each template. */
  templates(options?: ListOptions): List<PipelineTemplate> {
    return listOf(this.transport, "/pipelines/templates", "templates", options);
  }

  /** Returns a template, with the reason when it is unavailable. */
  template(id: string, options?: CallOptions): Promise<PipelineTemplate> {
    return this.transport.request("GET", pathOf("pipelines", "templates", id), options);
  }

  /** Creates all services of a template. Also requires services:write. */
  create(body: NewPipeline, options?: CallOptions): Promise<Pipeline> {
    return this.transport.request("POST", "/pipelines", { ...options, body });
  }

  /** Lists the pipelines of the organization. */
  list(options?: ListOptions): List<Pipeline> {
    return listOf(this.transport, "/pipelines", "pipelines", options);
  }

  /**
   * Returns a pipeline with its services and connections. Passwords are included for callers with services:secrets,
   * which is audited.
   */
  get(id: string, options?: CallOptions): Promise<PipelineDetail> {
    return this.transport.request("GET", pathOf("pipelines", id), options);
  }

  /** Deletes a pipeline with all its services, in any state. */
  delete(id: string, options?: CallOptions): Promise<Pipeline> {
    return this.transport.request("DELETE", pathOf("pipelines", id), options);
  }
}

/** Projects: resources and their dependencies, described in one document. */
export class ProjectMethods extends ApiMethods {
  /** Lists the projects of the organization, deleted ones for 30 days. */
  list(options?: ListOptions): List<Project> {
    return listOf(this.transport, "/projects", "projects", options);
  }

  /** Returns a project with its resources. */
  get(name: string, options?: CallOptions): Promise<Project> {
    return this.transport.request("GET", pathOf("projects", name), options);
  }

  /** Lists the deployments of a project, newest first. */
  deployments(name: string, options?: ListOptions): List<Deployment> {
    return listOf(this.transport, pathOf("projects", name, "deployments"), "deployments", options);
  }

  /** Returns a deployment with its plan and outcome. */
  deployment(name: string, deploymentId: string, options?: CallOptions): Promise<Deployment> {
    return this.transport.request("GET", pathOf("projects", name, "deployments", deploymentId), options);
  }

  /**
   * Aborts a deployment in progress. All resources of a first deployment are deleted; of a later one, those that it
   * created and that never ran.
   */
  abort(name: string, deploymentId: string, options?: CallOptions): Promise<Deployment> {
    return this.transport.request("POST", pathOf("projects", name, "deployments", deploymentId, "abort"), options);
  }

  /**
   * Returns differences between resources and the last deployment's descriptor, also those that it recorded and did not
   * apply.
   */
  drift(name: string, options?: CallOptions): Promise<ProjectDrift> {
    return this.transport.request("GET", pathOf("projects", name, "drift"), options);
  }

  /** Removes an unmanaged resource from the project; the resource stays in the organization. */
  release(name: string, logicalName: string, options?: CallOptions): Promise<Project> {
    return this.transport.request("POST", pathOf("projects", name, "resources", logicalName, "release"), options);
  }

  /** Deletes a project with all its resources, also unmanaged ones, in the reverse order of their dependencies. */
  delete(name: string, options?: CallOptions): Promise<Project> {
    return this.transport.request("DELETE", pathOf("projects", name), options);
  }

  /** Returns the JSON Schema (2020-12) of descriptors, with the kinds of resources of this installation. */
  schema(options?: CallOptions): Promise<SchemaText> {
    return this.transport.request("GET", "/schemas/project.json", options);
  }
}

/** Queries of a service: statistics, running sessions and the query console. */
export class QueryMethods extends ApiMethods {
  /**
   * Assesses a T-SQL script: which features it uses, and which of them the service supports. Nothing is run, and no
   * name is resolved. A statement with an error is a finding, and the assessment continues after it. 422 for a service
   * of another engine.
   */
  assess(serviceId: string, sql: string, options?: CallOptions): Promise<ScriptAssessment> {
    const path = pathOf("managed-services", serviceId, "tsql", "assess");
    return this.transport.request("POST", path, { ...options, body: { sql } });
  }

  /**
   * Lists the unsupported features that T-SQL clients of the primary used, the most frequent first. The counts begin
   * with the start of its front end. 409 while the service does not run; 422 for a service of another engine.
   */
  unsupported(serviceId: string, options?: CallOptions): Promise<UnsupportedFeatures> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "tsql", "unsupported"), options);
  }

  /** Returns the result of a statistics task: 202 while it runs, then 200 with the statistics or the error. */
  statistics(serviceId: string, taskId: string, options?: CallOptions): Promise<QueryStatisticsTask> {
    const path = pathOf("managed-services", serviceId, "query-stats");
    return this.transport.request("GET", path, { ...options, query: { task_id: taskId } });
  }

  /** Lists sessions that run a query or have an open transaction, the longest first, without the platform's own. */
  running(serviceId: string, options?: CallOptions): Promise<RunningQueries> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "queries", "running"), options);
  }

  /** Cancels the running query of a session; the session stays open. */
  cancel(serviceId: string, queryRunId: string, options?: CallOptions): Promise<SignalledQuery> {
    const path = pathOf("managed-services", serviceId, "queries", queryRunId, "cancel");
    return this.transport.request("POST", path, options);
  }

  /** Terminates a session with its transaction. */
  terminate(serviceId: string, queryRunId: string, options?: CallOptions): Promise<SignalledQuery> {
    const path = pathOf("managed-services", serviceId, "queries", queryRunId, "terminate");
    return this.transport.request("POST", path, options);
  }
}

/** Queues in a PostgreSQL service, and their messages over HTTP. */
export class QueueMethods extends ApiMethods {
  /**
   * Creates a queue with the status Pending; it accepts messages once it is Active. 409 for a name in use, for the
   * 201st queue of a service, and while the service does not run. 422 for an engine without queues, and for an unknown
   * database.
   */
  create(serviceId: string, body: NewQueue, options?: CallOptions): Promise<Queue> {
    return this.transport.request("POST", pathOf("managed-services", serviceId, "queues"), { ...options, body });
  }

  /** Lists the queues of a service by name. */
  list(serviceId: string, options?: ListOptions): List<Queue> {
    return listOf(this.transport, pathOf("managed-services", serviceId, "queues"), "queues", options);
  }

  get(serviceId: string, name: string, options?: CallOptions): Promise<Queue> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "queues", name), options);
  }

  /** Changes settings. The response is sent once the next message gets them, after 5 s at the latest. */
  update(serviceId: string, name: string, body: QueueChange, options?: CallOptions): Promise<Queue> {
    return this.transport.request("PATCH", pathOf("managed-services", serviceId, "queues", name), { ...options, body });
  }

  /** Deletes a queue with its messages, in any state. A repeated call is 202 during the deletion, then 404. */
  delete(serviceId: string, name: string, options?: CallOptions): Promise<Queue> {
    return this.transport.request("DELETE", pathOf("managed-services", serviceId, "queues", name), options);
  }

  /**
   * Counts the messages exactly, as a task. Its result is `{queue_name, ready_messages, inflight_messages,
   * dead_messages, delayed_messages, oldest_age_seconds, oldest_snapshot}`.
   */
  count(serviceId: string, name: string, options?: CallOptions): Promise<QueueTask> {
    return this.transport.request("POST", pathOf("managed-services", serviceId, "queues", name, "stats"), options);
  }

  /** Returns the result of a count task; 202 while it runs. */
  counts(serviceId: string, name: string, taskId: string, options?: CallOptions): Promise<Task> {
    const path = pathOf("managed-services", serviceId, "queues", name, "stats");
    return this.transport.request("GET", path, { ...options, query: { task_id: taskId } });
  }

  /** Lists dead messages, whose attempts are used up, by id. They are stored for 14 days. */
  dead(serviceId: string, name: string, options?: ListOptions): List<DeadMessage> {
    return listOf(this.transport, pathOf("managed-services", serviceId, "queues", name, "dead"), "messages", options);
  }

  /** Deletes all dead messages, as a task. Its result is `{messages}`, their number. */
  purgeDead(serviceId: string, name: string, options?: CallOptions): Promise<QueueTask> {
    return this.transport.request("DELETE", pathOf("managed-services", serviceId, "queues", name, "dead"), options);
  }

  /**
   * Makes dead messages ready again: those in `ids`, or all. Ids and payloads stay, attempts start at 0. The task's
   * result is `{messages}`, their number.
   */
  redrive(serviceId: string, name: string, ids?: readonly number[], options?: CallOptions): Promise<QueueTask> {
    const path = pathOf("managed-services", serviceId, "queues", name, "dead", "redrive");
    return this.transport.request("POST", path, { ...options, body: { ids } });
  }

  /** Deletes all messages that are not dead, as a task. Its result is `{messages}`, their number. */
  purge(serviceId: string, name: string, options?: CallOptions): Promise<QueueTask> {
    return this.transport.request("POST", pathOf("managed-services", serviceId, "queues", name, "purge"), options);
  }
}

/** Managed database services. */
export class ServiceMethods extends ApiMethods {
  /** Returns the maintenance window and the pending updates of a service, each with the time of its automatic start. */
  maintenance(serviceId: string, options?: CallOptions): Promise<Maintenance> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "maintenance"), options);
  }

  /**
   * Upgrades the engine to a newer version with its data: replicas first, one at a time, then the primary after a
   * switchover. A service with one node is unavailable during the upgrade. A PostgreSQL service is unavailable while
   * the data of its primary are upgraded; replicas copy them afterwards. If the engine is not healthy afterwards, the
   * upgrade is rolled back. With check_only it returns findings and changes nothing.
   */
  upgrade(
    serviceId: string,
    version: string,
    checkOnly?: boolean,
    acceptTextOrderChange?: boolean,
    options?: CallOptions,
  ): Promise<Upgrade> {
    const path = pathOf("managed-services", serviceId, "upgrade");
    return this.transport.request("POST", path, {
      ...options,
      body: { version, check_only: checkOnly, accept_text_order_change: acceptTextOrderChange },
    });
  }

  /** Creates a service. The response has the status Pending; the operation has the progress. */
  create(body: NewService, options?: CallOptions): Promise<ManagedService> {
    return this.transport.request("POST", "/managed-services", { ...options, body });
  }

  /** Lists the services of the organization, oldest first. */
  list(filter?: ServiceFilter, options?: ListOptions): List<ManagedService> {
    return listOf(this.transport, "/managed-services", "services", options, { ...filter });
  }

  /** Returns a service with its operation in progress and its health. */
  get(id: string, options?: CallOptions): Promise<ManagedService> {
    return this.transport.request("GET", pathOf("managed-services", id), options);
  }

  /**
   * Changes a service. A new plan or more storage starts an operation, and the response is 202 while it is in progress.
   * A new allow-list takes effect within 5 s, for open sessions too.
   */
  update(id: string, body: ServiceChange, options?: CallOptions): Promise<ManagedService> {
    return this.transport.request("PATCH", pathOf("managed-services", id), { ...options, body });
  }

  /**
   * Changes the plan of a service. The engine is restarted once with the settings of the new plan; a service with one
   * node is unavailable during the restart. When a machine cannot have the new size, the plan stays and the operation
   * fails with the reason.
   */
  resize(id: string, planName: string, options?: CallOptions): Promise<ManagedService> {
    const path = pathOf("managed-services", id, "resize");
    return this.transport.request("POST", path, { ...options, body: { plan_name: planName } });
  }

  /**
   * Increases the storage without a restart. The operation is completed when the file system has the new size. Storage
   * cannot shrink.
   */
  expandStorage(id: string, storageSizeGb: number, options?: CallOptions): Promise<ManagedService> {
    const path = pathOf("managed-services", id, "storage", "expand");
    return this.transport.request("POST", path, { ...options, body: { storage_size_gb: storageSizeGb } });
  }

  /**
   * Allows writes for 15 minutes to a service whose writes are blocked by a full disk, so that clients can delete data.
   * Afterwards writes are blocked again unless enough space is free. 409 when writes are not blocked.
   */
  enableWrites(id: string, options?: CallOptions): Promise<ManagedService> {
    return this.transport.request("POST", pathOf("managed-services", id, "enable-writes"), options);
  }

  /** Returns everything that a client needs to connect, except the password. */
  connection(id: string, options?: CallOptions): Promise<Connection> {
    return this.transport.request("GET", pathOf("managed-services", id, "connection"), options);
  }

  /** Lists the nodes of a service. */
  nodes(id: string, options?: ListOptions): List<ServiceNode> {
    return listOf(this.transport, pathOf("managed-services", id, "nodes"), "nodes", options);
  }

  /** Returns the progress of the current operation. */
  taskSummary(id: string, options?: CallOptions): Promise<TaskSummary> {
    return this.transport.request("GET", pathOf("managed-services", id, "task-summary"), options);
  }
}

/** Sessions of users in browsers. */
export class Sessions extends ApiMethods {
  /**
   * Signs a user in, by user name and password or by a one-time code. The response sets the cookie __Host-holdfast,
   * which browsers send with requests of this origin; calls other than GET and HEAD also require the header
   * Holdfast-Csrf with csrf_token. A session expires after 12 hours without a call and after 7 days. A change, reset or
   * removal of the password ends it. A user has at most 50 sessions; a further one ends the oldest.
   */
  create(body: NewSession, options?: CallOptions): Promise<CurrentSession> {
    return this.transport.request("POST", "/sessions", { ...options, body });
  }

  /** Lists the caller's own sessions, oldest first. */
  list(options?: ListOptions): List<Session> {
    return listOf(this.transport, "/sessions", "sessions", options);
  }

  /** Returns the session of the call's cookie, with its CSRF token. 404 for any other credential. */
  current(options?: CallOptions): Promise<CurrentSession> {
    return this.transport.request("GET", "/sessions/current", options);
  }

  /** Ends the session of the call's cookie immediately, and removes the cookie. 404 for any other credential. */
  deleteCurrent(options?: CallOptions): Promise<void> {
    return this.transport.request("DELETE", "/sessions/current", { ...options, absentIsSuccess: true });
  }

  /** Ends a session of the caller immediately: the one with this id, or all with "all". */
  delete(id: string, options?: CallOptions): Promise<void> {
    return this.transport.request("DELETE", pathOf("sessions", id), { ...options, absentIsSuccess: true });
  }

  /**
   * Creates a one-time code with which a browser signs the caller in, valid once and for 60 seconds. Users create it
   * with their password or their own token; a session by a token has the token's rights and ends with it. API keys are
   * refused, because a session belongs to a user.
   */
  createCode(options?: CallOptions): Promise<SessionCode> {
    return this.transport.request("POST", "/sessions/codes", options);
  }
}

/** Stacks: resources created from a template at an accepted cost. */
export class StackMethods extends ApiMethods {
  /** Lists the newest version of each template. */
  templates(options?: ListOptions): List<StackTemplate> {
    return listOf(this.transport, "/stacks/templates", "templates", options);
  }

  /** Returns a template, with the reason when it is unavailable. */
  template(name: string, options?: CallOptions): Promise<StackTemplate> {
    return this.transport.request("GET", pathOf("stacks", "templates", name), options);
  }

  /** Launches a stack at an accepted cost. Also requires the scopes of its kinds of resources. */
  create(body: NewStack, options?: CallOptions): Promise<Stack> {
    return this.transport.request("POST", "/stacks", { ...options, body });
  }

  /** Lists the stacks of the organization. */
  list(options?: ListOptions): List<Stack> {
    return listOf(this.transport, "/stacks", "stacks", options);
  }

  /** Returns a stack with its resources. */
  get(id: string, options?: CallOptions): Promise<Stack> {
    return this.transport.request("GET", pathOf("stacks", id), options);
  }

  /** Deletes a stack with all its resources, in any state, in the reverse order of their dependencies. */
  delete(id: string, options?: CallOptions): Promise<Stack> {
    return this.transport.request("DELETE", pathOf("stacks", id), options);
  }

  /** Returns the changes of an upgrade to the newest version of the template; changes nothing. */
  previewUpgrade(id: string, options?: CallOptions): Promise<UpgradePreview> {
    return this.transport.request("POST", pathOf("stacks", id, "upgrade", "preview"), options);
  }

  /** Lists the upgrades of a stack, newest first. */
  migrations(id: string, options?: ListOptions): List<StackMigration> {
    return listOf(this.transport, pathOf("stacks", id, "migrations"), "migrations", options);
  }

  /** Returns an upgrade with its steps. */
  migration(id: string, migrationId: string, options?: CallOptions): Promise<StackMigration> {
    return this.transport.request("GET", pathOf("stacks", id, "migrations", migrationId), options);
  }
}

/** Tasks: requests whose result is fetched later. */
export class Tasks extends ApiMethods {
  /**
   * Returns a task by the id of a 202 response, for 24 hours. Needs the scope of the method that returned the id. 404
   * for all other ids.
   */
  get(taskId: string, options?: CallOptions): Promise<Task> {
    return this.transport.request("GET", pathOf("tasks", taskId), options);
  }
}

/** Bearer tokens, with at most the scopes of their creator. */
export class Tokens extends ApiMethods {
  /**
   * Creates a token. Only this response has it. It expires with its creator's credential at the latest and has no scope
   * that the creator lacks. Users may create their own tokens; keys and tokens require keys:write.
   */
  create(body: NewToken, options?: CallOptions): Promise<CreatedToken> {
    return this.transport.request("POST", "/tokens", { ...options, body });
  }

  /** Lists the tokens of the organization, without the tokens themselves. */
  list(options?: ListOptions): List<Token> {
    return listOf(this.transport, "/tokens", "tokens", options);
  }

  /**
   * Deletes a token and the tokens that were created with it. They are refused immediately. Users may delete their own
   * tokens, and a token may delete itself; deleting others requires keys:write.
   */
  delete(id: string, options?: CallOptions): Promise<void> {
    return this.transport.request("DELETE", pathOf("tokens", id), { ...options, absentIsSuccess: true });
  }
}

/** Topics in a service's engine. */
export class Topics extends ApiMethods {
  /** Lists the topics of the users, by name. 409 while the service does not run. */
  list(serviceId: string, options?: ListOptions): List<Topic> {
    return listOf(this.transport, pathOf("managed-services", serviceId, "topics"), "topics", options);
  }

  /** Creates a topic. 409 if it exists, and when all partitions would be more than 2,000 for each vCPU of the plan. */
  create(serviceId: string, body: NewTopic, options?: CallOptions): Promise<Topic> {
    return this.transport.request("POST", pathOf("managed-services", serviceId, "topics"), { ...options, body });
  }

  /** Returns a topic with its partitions. */
  get(serviceId: string, name: string, options?: CallOptions): Promise<Topic> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "topics", name), options);
  }

  /**
   * Adds partitions and changes settings; null removes the topic's own value of a setting. 422 for fewer partitions.
   */
  update(serviceId: string, name: string, body: TopicChange, options?: CallOptions): Promise<Topic> {
    return this.transport.request("PATCH", pathOf("managed-services", serviceId, "topics", name), { ...options, body });
  }

  /** Deletes a topic with its records. */
  delete(serviceId: string, name: string, options?: CallOptions): Promise<void> {
    const path = pathOf("managed-services", serviceId, "topics", name);
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }
}

/** People and their passwords. */
export class UserMethods extends ApiMethods {
  /**
   * Creates a user without a password. They set one with the setup token, which is valid once. Add them as a member
   * afterwards.
   */
  create(username: string, options?: CallOptions): Promise<CreatedUser> {
    return this.transport.request("POST", "/users", { ...options, body: { username } });
  }

  /**
   * Creates a new setup token for a user with a lost token or password. The former token or password is invalid
   * immediately. Only for users that this organization created and who belong to no other; a platform operator can
   * reset others.
   */
  reset(userId: string, options?: CallOptions): Promise<CreatedUser> {
    return this.transport.request("POST", pathOf("users", userId, "reset"), options);
  }

  /**
   * Deletes a user that this organization created, and frees the name. 422 while they are a member of an organization.
   */
  delete(userId: string, options?: CallOptions): Promise<void> {
    return this.transport.request("DELETE", pathOf("users", userId), { ...options, absentIsSuccess: true });
  }

  /** Sets a password with a setup token. */
  setUp(token: string, password: string, options?: CallOptions): Promise<void> {
    return this.transport.request("POST", "/users/setup", { ...options, body: { token, password } });
  }
}

/** Webhook endpoints, which receive the organization's events as signed requests. */
export class WebhookMethods extends ApiMethods {
  /** Creates an endpoint. Only this response has the signing secret. */
  create(body: NewWebhook, options?: CallOptions): Promise<CreatedWebhook> {
    return this.transport.request("POST", "/webhooks", { ...options, body });
  }

  /** Lists the endpoints of the organization, without their secrets. */
  list(options?: ListOptions): List<Webhook> {
    return listOf(this.transport, "/webhooks", "webhooks", options);
  }

  /** Returns an endpoint, without its secret. */
  get(id: string, options?: CallOptions): Promise<Webhook> {
    return this.transport.request("GET", pathOf("webhooks", id), options);
  }

  /** Changes an endpoint. active: true also enables an endpoint that the platform disabled. */
  update(id: string, body: WebhookChange, options?: CallOptions): Promise<Webhook> {
    return this.transport.request("PATCH", pathOf("webhooks", id), { ...options, body });
  }

  /** Deletes an endpoint. No further attempt starts; a running one may finish. */
  delete(id: string, options?: CallOptions): Promise<void> {
    return this.transport.request("DELETE", pathOf("webhooks", id), { ...options, absentIsSuccess: true });
  }

  /**
   * Creates a new signing secret. During the overlap both secrets sign: the old one in X-Platform-Signature, the new
   * one in X-Platform-Signature-Next, and both in webhook-signature.
   */
  rotateSecret(id: string, overlapHours?: number, options?: CallOptions): Promise<RotatedSecret> {
    const path = pathOf("webhooks", id, "rotate-secret");
    return this.transport.request("POST", path, { ...options, body: { overlap_hours: overlapHours } });
  }
}
