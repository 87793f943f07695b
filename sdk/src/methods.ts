// Printed from the protos by `npm run generate`: each of these methods is one request.
import type {
  AlertRule,
  ApiKey,
  App,
  AppAuth,
  AppDomain,
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
  CreatedApiKey,
  CreatedInferenceKey,
  CreatedToken,
  CreatedUser,
  CreatedWebhook,
  Database,
  DatabasePassword,
  DatabaseUser,
  DeadMessage,
  DefaultChannel,
  Deployment,
  Drill,
  EnabledAuth,
  FiringAlert,
  Health,
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
  ServiceNode,
  SignalledQuery,
  Stack,
  StackMigration,
  StackTemplate,
  Task,
  TaskSummary,
  Token,
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
  NewInferenceKey,
  NewMetricsExport,
  NewNode,
  NewPipeline,
  NewQueue,
  NewService,
  NewStack,
  NewToken,
  NewWebhook,
  ParameterChange,
  QueueChange,
  RestoreChoice,
  SampleFilter,
  ServiceChange,
  ServiceFilter,
  WebhookChange,
} from "./requests.ts";
import { type List, type ListOptions, listOf } from "./pages.ts";
import { ApiMethods, type CallOptions, pathOf } from "./transport.ts";

/** Rules that watch a service's metrics, and the alerts that they bring. */
export class AlertMethods extends ApiMethods {
  /** The rules of a service with their states. */
  rules(serviceId: string, options?: ListOptions): List<AlertRule> {
    return listOf(this.transport, pathOf("managed-services", serviceId, "alerts", "rules"), "rules", options);
  }

  /** Makes a rule. A service has at most 50, the default ones among them. */
  createRule(serviceId: string, body: NewAlertRule, options?: CallOptions): Promise<AlertRule> {
    const path = pathOf("managed-services", serviceId, "alerts", "rules");
    return this.transport.request("POST", path, { ...options, body });
  }

  /** One rule with its state. */
  getRule(serviceId: string, ruleId: string, options?: CallOptions): Promise<AlertRule> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "alerts", "rules", ruleId), options);
  }

  /** A change of the condition resolves the rule's alerts, and the rule begins anew. */
  updateRule(serviceId: string, ruleId: string, body: AlertRuleChange, options?: CallOptions): Promise<AlertRule> {
    const path = pathOf("managed-services", serviceId, "alerts", "rules", ruleId);
    return this.transport.request("PATCH", path, { ...options, body });
  }

  /** A rule that fires is resolved. */
  deleteRule(serviceId: string, ruleId: string, options?: CallOptions): Promise<void> {
    const path = pathOf("managed-services", serviceId, "alerts", "rules", ruleId);
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }

  /** All alerts of the organization that fire now. */
  firing(options?: ListOptions): List<FiringAlert> {
    return listOf(this.transport, "/alerts/firing", "alerts", options);
  }

  /** The channel that rules without one of their own use. */
  defaultChannel(options?: CallOptions): Promise<DefaultChannel> {
    return this.transport.request("GET", "/alerts/default-channel", options);
  }

  /** Names the channel that rules without one of their own use from now on; null for none. */
  setDefaultChannel(channelId: string | null, options?: CallOptions): Promise<DefaultChannel> {
    return this.transport.request("PUT", "/alerts/default-channel", { ...options, body: { channel_id: channelId } });
  }
}

/** Ids with secrets that programs of the organization sign in with. */
export class ApiKeys extends ApiMethods {
  /** The keys of the organization, without their secrets. */
  list(options?: ListOptions): List<ApiKey> {
    return listOf(this.transport, "/api-keys", "api_keys", options);
  }

  /** The secret is shown this once. Scopes that the caller lacks cannot be given: 403. */
  create(body: NewApiKey, options?: CallOptions): Promise<CreatedApiKey> {
    return this.transport.request("POST", "/api-keys", { ...options, body });
  }

  /** A new secret under the same id. The old one works on for overlap_hours, none by default. */
  rotate(id: string, overlapHours?: number, options?: CallOptions): Promise<CreatedApiKey> {
    const path = pathOf("api-keys", id, "rotate");
    return this.transport.request("POST", path, { ...options, body: { overlap_hours: overlapHours } });
  }

  /** Ends the key at once, and the tokens that it made. */
  delete(id: string, options?: CallOptions): Promise<void> {
    return this.transport.request("DELETE", pathOf("api-keys", id), { ...options, absentIsSuccess: true });
  }
}

/** Apps of the organization, and the databases that are attached to them. */
export class Apps extends ApiMethods {
  list(options?: ListOptions): List<App> {
    return listOf(this.transport, "/app-services", "apps", options);
  }

  /** An app that runs anywhere; it is Running at once. 409 for a name in use. */
  create(body: NewApp, options?: CallOptions): Promise<App> {
    return this.transport.request("POST", "/app-services", { ...options, body });
  }

  get(appId: string, options?: CallOptions): Promise<App> {
    return this.transport.request("GET", pathOf("app-services", appId), options);
  }

  update(appId: string, body: AppChange, options?: CallOptions): Promise<App> {
    return this.transport.request("PATCH", pathOf("app-services", appId), { ...options, body });
  }

  /** Its sign-in ends with it; the end users stay in the owner's database. */
  delete(appId: string, options?: CallOptions): Promise<void> {
    return this.transport.request("DELETE", pathOf("app-services", appId), { ...options, absentIsSuccess: true });
  }

  /** Attaches a database of a PostgreSQL service. 422 attachment_not_postgresql for another engine. */
  attach(appId: string, body: NewAttachment, options?: CallOptions): Promise<Attachment> {
    return this.transport.request("POST", pathOf("app-services", appId, "attachments"), { ...options, body });
  }

  /** 409 attachment_in_use while the app's end users are in it. */
  detach(appId: string, attachmentId: string, options?: CallOptions): Promise<void> {
    const path = pathOf("app-services", appId, "attachments", attachmentId);
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }

  /** Names a domain of the owner's; it counts once it is verified. 409 name_taken when the app has it already. */
  addDomain(appId: string, body: NewAppDomain, options?: CallOptions): Promise<AppDomain> {
    return this.transport.request("POST", pathOf("app-services", appId, "domains"), { ...options, body });
  }

  /**
   * Looks for the TXT record of `verification`. 422 custom_domain_not_verified when DNS does not have it, 409
   * name_taken when another app has verified the domain.
   */
  verifyDomain(appId: string, domainId: string, options?: CallOptions): Promise<AppDomain> {
    return this.transport.request("POST", pathOf("app-services", appId, "domains", domainId, "verify"), options);
  }

  /** 409 wrong_state while the app's issuer is under it. */
  deleteDomain(appId: string, domainId: string, options?: CallOptions): Promise<void> {
    const path = pathOf("app-services", appId, "domains", domainId);
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }
}

/** Sign-in for an app: its issuer, clients, keys and end users. */
export class Auth extends ApiMethods {
  /**
   * Begins to make the issuer; GET says when it is Active. After Failed or Disabled it keeps its id and chooses its
   * domain anew. 409 auth_already_enabled, 422 attachment_not_postgresql, attachment_unhealthy,
   * custom_domain_not_verified and target_not_allowed, 400 smtp_required.
   */
  enable(appId: string, body: NewAuth, options?: CallOptions): Promise<EnabledAuth> {
    return this.transport.request("POST", pathOf("app-services", appId, "auth", "enable"), { ...options, body });
  }

  get(appId: string, options?: CallOptions): Promise<AppAuth> {
    return this.transport.request("GET", pathOf("app-services", appId, "auth"), options);
  }

  /** Another mail server needs its password anew. */
  update(appId: string, body: AuthChange, options?: CallOptions): Promise<AppAuth> {
    return this.transport.request("PATCH", pathOf("app-services", appId, "auth"), { ...options, body });
  }

  /** Its hosts answer 404 from then on; keys and end users stay. */
  disable(appId: string, options?: CallOptions): Promise<AppAuth> {
    return this.transport.request("POST", pathOf("app-services", appId, "auth", "disable"), options);
  }

  /** The keys that sign or have signed, newest first, 20 at most. */
  keys(appId: string, options?: CallOptions): Promise<AuthKeys> {
    return this.transport.request("GET", pathOf("app-services", appId, "auth", "keys"), options);
  }

  /**
   * The key that the JWKS has had in reserve signs from now on; tokens of the one before hold until it retires. With
   * `emergency` the one before and the reserve end at once, and with them every token that they signed.
   */
  rotateKey(appId: string, emergency?: boolean, options?: CallOptions): Promise<RotatedAuthKey> {
    const path = pathOf("app-services", appId, "auth", "rotate-key");
    return this.transport.request("POST", path, { ...options, body: { emergency } });
  }

  /** Ends a session of an end user, with its refresh tokens. A session that is not there is ended already. */
  revokeSession(appId: string, sessionId: string, options?: CallOptions): Promise<AuthTask> {
    const path = pathOf("app-services", appId, "auth", "sessions", sessionId, "revoke");
    return this.transport.request("POST", path, options);
  }

  /** Leaves nothing of an end user in any table; the task's result is `{erased}`, false when there was no such user. */
  eraseUser(appId: string, email?: string, userId?: string, options?: CallOptions): Promise<AuthTask> {
    const path = pathOf("app-services", appId, "auth", "users", "delete");
    return this.transport.request("POST", path, { ...options, body: { email, user_id: userId } });
  }

  /** The same, by address or id in the path. */
  deleteUser(appId: string, emailOrUserId: string, options?: CallOptions): Promise<AuthTask> {
    return this.transport.request("DELETE", pathOf("app-services", appId, "auth", "users", emailOrUserId), options);
  }

  /** Makes a user before the first sign-in, as apps need whose sign-up is closed. 409 user_exists. */
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

  /** What end users did, newest first, for 400 days. */
  events(appId: string, options?: ListOptions): List<AuthEvent> {
    return listOf(this.transport, pathOf("app-services", appId, "auth", "events"), "events", options);
  }

  /** 20 at most. Only this answer shows the secret of a confidential one. */
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

  /** Only this answer shows the new secret; the one before is of no use from then on. */
  rotateClientSecret(appId: string, clientId: string, options?: CallOptions): Promise<AuthClient> {
    const path = pathOf("app-services", appId, "auth", "clients", clientId, "rotate-secret");
    return this.transport.request("POST", path, options);
  }

  /** Sends one mail through the configured server. */
  testSmtp(appId: string, to: string, options?: CallOptions): Promise<AuthSmtpTest> {
    const path = pathOf("app-services", appId, "auth", "smtp", "test");
    return this.transport.request("POST", path, { ...options, body: { to } });
  }

  /**
   * Lets end users sign in with another provider: `google`, or `oidc` for any other that speaks OpenID Connect. 422
   * target_not_allowed for one that apps may not reach.
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

  /** Users who came by it sign in by mail from then on. */
  deleteProvider(appId: string, provider: string, options?: CallOptions): Promise<void> {
    const path = pathOf("app-services", appId, "auth", "idp-providers", provider);
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }
}

/** Backups of a service, also of one that is deleted. */
export class BackupMethods extends ApiMethods {
  /** Backups of the service, newest first. Manual backups of a deleted service are still listed under its id. */
  list(serviceId: string, filter?: BackupFilter, options?: ListOptions): List<Backup> {
    return listOf(this.transport, pathOf("managed-services", serviceId, "backups"), "backups", options, { ...filter });
  }

  /** One backup as it is now. */
  get(serviceId: string, backupId: string, options?: CallOptions): Promise<Backup> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "backups", backupId), options);
  }

  /** Deletes a manual backup that has ended. Automated backups are deleted by their retention. */
  delete(serviceId: string, backupId: string, options?: CallOptions): Promise<void> {
    const path = pathOf("managed-services", serviceId, "backups", backupId);
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }

  /** Reads and opens every byte of a completed backup. The operation named in operation_id has the result. */
  verify(serviceId: string, backupId: string, options?: CallOptions): Promise<Backup> {
    const path = pathOf("managed-services", serviceId, "backups", backupId, "verify");
    return this.transport.request("POST", path, options);
  }

  /** Ends a backup that has not ended yet; it becomes failed with the reason "cancelled". */
  cancel(serviceId: string, backupId: string, options?: CallOptions): Promise<Backup> {
    const path = pathOf("managed-services", serviceId, "backups", backupId, "cancel");
    return this.transport.request("POST", path, options);
  }

  /** Makes a new service with the data of a completed backup. The source is never written. */
  restore(serviceId: string, backupId: string, body: RestoreChoice, options?: CallOptions): Promise<ManagedService> {
    const path = pathOf("managed-services", serviceId, "backups", backupId, "restore");
    return this.transport.request("POST", path, { ...options, body });
  }

  /** When the daily backup begins and for how long automated backups are kept. */
  settings(serviceId: string, options?: CallOptions): Promise<BackupSettings> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "backup-settings"), options);
  }

  /** Changes them. A shorter retention takes effect on the backups that are there. */
  updateSettings(serviceId: string, body: BackupSettingsChange, options?: CallOptions): Promise<BackupSettings> {
    const path = pathOf("managed-services", serviceId, "backup-settings");
    return this.transport.request("PATCH", path, { ...options, body });
  }

  /**
   * Tests the service's backups: its newest one, and a moment chosen at random where the engine can restore any second,
   * are restored on a machine without clients, and examined. The machine is removed afterwards. Once a week this
   * happens by itself.
   */
  drill(serviceId: string, options?: CallOptions): Promise<Drill> {
    return this.transport.request("POST", pathOf("managed-services", serviceId, "backups", "drill"), options);
  }

  /** Drills of the service, newest first; the newest 20 are kept. */
  drills(serviceId: string, options?: ListOptions): List<Drill> {
    return listOf(this.transport, pathOf("managed-services", serviceId, "backups", "drills"), "drills", options);
  }

  /** Has the next backups sealed under a new key. Backups that are there keep theirs, and can still be restored. */
  rotateKey(serviceId: string, options?: CallOptions): Promise<BackupKey> {
    return this.transport.request("POST", pathOf("managed-services", serviceId, "backups", "rotate-key"), options);
  }
}

/** Where alerts are sent: HTTP endpoints and e-mail addresses. */
export class ChannelMethods extends ApiMethods {
  /** The channels of the organization, without their secrets. */
  list(options?: ListOptions): List<Channel> {
    return listOf(this.transport, "/alerts/channels", "channels", options);
  }

  /**
   * Creates a channel, at most 20 in an organization. Only this answer shows the signing secret of a webhook. An e-mail
   * address receives a link first, and alerts once it is confirmed there.
   */
  create(body: NewChannel, options?: CallOptions): Promise<Channel> {
    return this.transport.request("POST", "/alerts/channels", { ...options, body });
  }

  /** One channel, without its secret. */
  get(id: string, options?: CallOptions): Promise<Channel> {
    return this.transport.request("GET", pathOf("alerts", "channels", id), options);
  }

  /** Another e-mail address has to be confirmed anew. The type stays. */
  update(id: string, body: ChannelChange, options?: CallOptions): Promise<Channel> {
    return this.transport.request("PATCH", pathOf("alerts", "channels", id), { ...options, body });
  }

  /** Refused while a rule names the channel, or it is the default one. */
  delete(id: string, options?: CallOptions): Promise<void> {
    return this.transport.request("DELETE", pathOf("alerts", "channels", id), { ...options, absentIsSuccess: true });
  }
}

/** Tuning parameters of the engine of a service. */
export class Configurations extends ApiMethods {
  /** Each parameter with its value, its default and whether the engine has taken it. */
  get(serviceId: string, options?: CallOptions): Promise<Configuration> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "configuration"), options);
  }

  /**
   * One bad value rejects all. null resets a parameter. A parameter that needs a restart takes effect with the next
   * one. When the engine has not taken the values after 15 seconds, the answer is 202 with the operation. The next
   * change ends that operation.
   */
  update(serviceId: string, parameters: ParameterChange, options?: CallOptions): Promise<Configuration> {
    const path = pathOf("managed-services", serviceId, "configuration");
    return this.transport.request("PATCH", path, { ...options, body: { parameters } });
  }
}

/** Databases inside the engine of a service. */
export class DatabaseMethods extends ApiMethods {
  /** Databases as the engine has them now, and those in creation, by name. 409 while the service does not run. */
  list(serviceId: string, options?: ListOptions): List<Database> {
    return listOf(this.transport, pathOf("managed-services", serviceId, "databases"), "databases", options);
  }

  /**
   * Answers when the engine has the database; after 15 seconds without that it is 202 and tells the operation that ends
   * when it has. The default user owns it.
   */
  create(serviceId: string, name: string, options?: CallOptions): Promise<Database> {
    const path = pathOf("managed-services", serviceId, "databases");
    return this.transport.request("POST", path, { ...options, body: { name } });
  }
}

/** Users inside the engine of a service, those made in SQL too. */
export class DatabaseUserMethods extends ApiMethods {
  /** Users as the engine has them now, and those in creation, by name. 409 while the service does not run. */
  list(serviceId: string, options?: ListOptions): List<DatabaseUser> {
    return listOf(this.transport, pathOf("managed-services", serviceId, "database-users"), "users", options);
  }

  /**
   * Answers when the engine has the user; after 15 seconds without that it is 202 and tells the operation that ends
   * when it has. The password comes from reveal-password.
   */
  create(serviceId: string, body: NewDatabaseUser, options?: CallOptions): Promise<DatabaseUser> {
    const path = pathOf("managed-services", serviceId, "database-users");
    return this.transport.request("POST", path, { ...options, body });
  }

  /** As the engine has it now, or as it is being made. 409 while the service does not run. */
  get(serviceId: string, username: string, options?: CallOptions): Promise<DatabaseUser> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "database-users", username), options);
  }

  /** The current password. 409 when it was changed in SQL: reset it. */
  revealPassword(serviceId: string, username: string, options?: CallOptions): Promise<DatabasePassword> {
    const path = pathOf("managed-services", serviceId, "database-users", username, "reveal-password");
    return this.transport.request("POST", path, options);
  }

  /**
   * Gives the user a new random password; open sessions stay. After 15 seconds it is 202: the password of the answer
   * holds from the moment that the operation is completed, and until then the one before does. It is worth nothing when
   * it fails.
   */
  resetPassword(serviceId: string, username: string, options?: CallOptions): Promise<DatabasePassword> {
    const path = pathOf("managed-services", serviceId, "database-users", username, "reset-password");
    return this.transport.request("POST", path, options);
  }
}

/** Metrics and logs of services, pushed to where a team already looks. */
export class ExportMethods extends ApiMethods {
  /**
   * Pushes what is measured and logged from now on to the destination. A service has one integration of each
   * destination type, and an organization one global of each; it has at most 100. Logs need the scope services:data, a
   * global integration org:write.
   */
  create(body: NewMetricsExport, options?: CallOptions): Promise<MetricsExport> {
    return this.transport.request("POST", "/api/v1/metrics-exports", { ...options, body });
  }

  /** One integration, and how it does. */
  get(id: string, options?: CallOptions): Promise<MetricsExport> {
    return this.transport.request("GET", pathOf("api", "v1", "metrics-exports", id), options);
  }

  /**
   * Changes the fields that are given. The configuration merges by key, and null clears a key that may be absent. A
   * change of where it leads needs the secrets anew; another destination type needs a whole configuration.
   */
  update(id: string, body: MetricsExportChange, options?: CallOptions): Promise<MetricsExport> {
    return this.transport.request("PUT", pathOf("api", "v1", "metrics-exports", id), { ...options, body });
  }

  /** Ends it. What was not sent by then is not sent any more. */
  delete(id: string, options?: CallOptions): Promise<void> {
    const path = pathOf("api", "v1", "metrics-exports", id);
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }

  /** Pauses it; what it has not sent is kept for 24 hours. */
  disable(id: string, options?: CallOptions): Promise<MetricsExport> {
    return this.transport.request("POST", pathOf("api", "v1", "metrics-exports", id, "disable"), options);
  }

  /** Goes on where it stopped, with its failures forgotten. */
  enable(id: string, options?: CallOptions): Promise<MetricsExport> {
    return this.transport.request("POST", pathOf("api", "v1", "metrics-exports", id, "enable"), options);
  }

  /** Asks the destination whether it would take something, within 10 seconds and without data. 10 a minute. */
  test(id: string, options?: CallOptions): Promise<MetricsExportTest> {
    return this.transport.request("POST", pathOf("api", "v1", "metrics-exports", id, "test"), options);
  }
}

/** Models of other providers behind one endpoint: who provides them, what they may cost, keys and usage. */
export class InferenceMethods extends ApiMethods {
  /**
   * Configures a provider of models, or changes it: what is omitted stays. The key is stored sealed and never returned.
   */
  putProvider(orgId: string, body: InferenceProviderChange, options?: CallOptions): Promise<InferenceProvider> {
    const path = pathOf("organizations", orgId, "inference", "providers");
    return this.transport.request("PUT", path, { ...options, body });
  }

  /** Forgets a provider and its key. Its usage stays. */
  deleteProvider(orgId: string, provider: string, options?: CallOptions): Promise<void> {
    const path = pathOf("organizations", orgId, "inference", "providers", provider);
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }

  /** Limits, rules, and how the month stands. 404 until they are set. */
  settings(orgId: string, options?: CallOptions): Promise<InferenceSettings> {
    return this.transport.request("GET", pathOf("organizations", orgId, "inference", "settings"), options);
  }

  /** Sets limits and rules; what is omitted stays. The first call needs monthly_cost_limit_cents. */
  putSettings(orgId: string, body: InferenceSettingsChange, options?: CallOptions): Promise<InferenceSettings> {
    return this.transport.request("PUT", pathOf("organizations", orgId, "inference", "settings"), { ...options, body });
  }

  /** Makes a key for an application. Only this answer shows its secret. */
  createKey(orgId: string, body: NewInferenceKey, options?: CallOptions): Promise<CreatedInferenceKey> {
    return this.transport.request("POST", pathOf("organizations", orgId, "inference", "keys"), { ...options, body });
  }

  /** The keys of the organization, without their secrets. */
  keys(orgId: string, options?: ListOptions): List<InferenceKey> {
    return listOf(this.transport, pathOf("organizations", orgId, "inference", "keys"), "keys", options);
  }

  /** One key, without its secret. */
  getKey(orgId: string, id: string, options?: CallOptions): Promise<InferenceKey> {
    return this.transport.request("GET", pathOf("organizations", orgId, "inference", "keys", id), options);
  }

  /** Changes the fields that are present; null takes a limit or an end away. */
  updateKey(orgId: string, id: string, body: InferenceKeyChange, options?: CallOptions): Promise<InferenceKey> {
    const path = pathOf("organizations", orgId, "inference", "keys", id);
    return this.transport.request("PATCH", path, { ...options, body });
  }

  /** Revokes the key at once. Its usage stays. */
  deleteKey(orgId: string, id: string, options?: CallOptions): Promise<void> {
    const path = pathOf("organizations", orgId, "inference", "keys", id);
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }

  /** A new secret under the same id and limits. The old one is refused at once. */
  rotateKey(orgId: string, id: string, options?: CallOptions): Promise<CreatedInferenceKey> {
    return this.transport.request("POST", pathOf("organizations", orgId, "inference", "keys", id, "rotate"), options);
  }

  /** What was used, by model or by key, at most 5 s old. The 1,000 dearest of them; total counts all. */
  usage(orgId: string, filter: InferenceUsageQuery, options?: CallOptions): Promise<InferenceUsage> {
    const path = pathOf("organizations", orgId, "inference", "usage");
    return this.transport.request("GET", path, { ...options, query: { ...filter } });
  }
}

/** People of an organization. */
export class Members extends ApiMethods {
  /** People and their roles. */
  list(orgId: string, options?: ListOptions): List<Member> {
    return listOf(this.transport, pathOf("organizations", orgId, "members"), "members", options);
  }

  /**
   * Adds a person that this organization made, or that shares another organization with the caller. A member cannot
   * grant a role above their own.
   */
  add(orgId: string, userId: string, role: Role, options?: CallOptions): Promise<Member> {
    const path = pathOf("organizations", orgId, "members");
    return this.transport.request("POST", path, { ...options, body: { user_id: userId, role } });
  }

  /** The last owner stays owner: 409. */
  update(orgId: string, userId: string, role: Role, options?: CallOptions): Promise<Member> {
    const path = pathOf("organizations", orgId, "members", userId);
    return this.transport.request("PATCH", path, { ...options, body: { role } });
  }

  /** Everybody may leave; removing others needs org:write. The last owner cannot leave: 409. */
  remove(orgId: string, userId: string, options?: CallOptions): Promise<void> {
    const path = pathOf("organizations", orgId, "members", userId);
    return this.transport.request("DELETE", path, { ...options, absentIsSuccess: true });
  }
}

/** What services' machines and engines did over time, sampled every 15 s. The catalog has the names of all metrics. */
export class MetricMethods extends ApiMethods {
  /**
   * Metrics of a service's nodes, sampled every 15 s. Times without samples have no points: a gap is never told as
   * zero.
   */
  get(serviceId: string, filter: MetricQuery, options?: CallOptions): Promise<Metrics> {
    const path = pathOf("managed-services", serviceId, "metrics");
    return this.transport.request("GET", path, { ...options, query: { ...filter } });
  }

  /** Samples as they came, of the last 24 hours, oldest first for each node; late ones come when they are there. */
  samples(serviceId: string, filter: SampleFilter, options?: ListOptions): List<MetricSample> {
    const path = pathOf("managed-services", serviceId, "metrics", "samples");
    return listOf(this.transport, path, "samples", options, { ...filter });
  }

  /** The newest sample of each node of a service, as Prometheus reads it. None is older than 60 s. */
  export(serviceId: string, options?: CallOptions): Promise<MetricExposition> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "metrics", "export"), options);
  }

  /** The same of all services of the organization that the credential may touch. */
  exportAll(options?: CallOptions): Promise<MetricExposition> {
    return this.transport.request("GET", "/metrics", options);
  }

  /**
   * Metrics of the controller that answers, in the text format of Prometheus: times of calls, of reconciles and of
   * etcd, sizes of queues, sessions of agents, and the lag of the history. For platform operators; each controller has
   * its own.
   */
  exportPlatform(options?: CallOptions): Promise<MetricExposition> {
    return this.transport.request("GET", "/metrics/platform", options);
  }
}

/** Nodes of a service; `services.nodes` lists them. */
export class NodeMethods extends ApiMethods {
  /**
   * Adds a replica: its data are copied from the primary, and it streams from then on. A service has at most 5 nodes.
   */
  add(serviceId: string, body: NewNode, options?: CallOptions): Promise<ServiceNode> {
    return this.transport.request("POST", pathOf("managed-services", serviceId, "nodes"), { ...options, body });
  }

  /** One node as it is now. */
  get(serviceId: string, nodeId: string, options?: CallOptions): Promise<ServiceNode> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "nodes", nodeId), options);
  }

  /**
   * Removes a replica with its machine and its data. The primary is removed by deleting the service, or after a
   * failover.
   */
  remove(serviceId: string, nodeId: string, options?: CallOptions): Promise<ServiceNode> {
    return this.transport.request("DELETE", pathOf("managed-services", serviceId, "nodes", nodeId), options);
  }

  /** How far the node is behind the primary, asked of both now: it takes up to 3 s. */
  status(serviceId: string, nodeId: string, options?: CallOptions): Promise<ReplicationStatus> {
    const path = pathOf("managed-services", serviceId, "nodes", nodeId, "replication-status");
    return this.transport.request("GET", path, options);
  }

  /**
   * Makes this replica the primary by a switchover: the primary stops, the replica receives all of its writes, takes
   * over its name, and the old primary follows. Writes pause for less than a second.
   */
  failover(serviceId: string, nodeId: string, options?: CallOptions): Promise<Operation> {
    return this.transport.request("POST", pathOf("managed-services", serviceId, "nodes", nodeId, "failover"), options);
  }
}

/** What takes time. */
export class Operations extends ApiMethods {
  /** Operations of one service, newest first. */
  list(serviceId: string, options?: ListOptions): List<Operation> {
    return listOf(this.transport, pathOf("managed-services", serviceId, "operations"), "operations", options);
  }

  /** One operation, also after its end. */
  get(id: string, options?: CallOptions): Promise<Operation> {
    return this.transport.request("GET", pathOf("operations", id), options);
  }
}

/** Organizations that the caller belongs to. */
export class Organizations extends ApiMethods {
  /** The organizations of the caller. */
  list(options?: ListOptions): List<Organization> {
    return listOf(this.transport, "/organizations", "organizations", options);
  }

  /** The person who makes it is its owner. Keys and tokens belong to one organization and cannot make another. */
  create(name: string, options?: CallOptions): Promise<Organization> {
    return this.transport.request("POST", "/organizations", { ...options, body: { name } });
  }

  /** One organization with its quota and its usage. */
  get(orgId: string, options?: CallOptions): Promise<Organization> {
    return this.transport.request("GET", pathOf("organizations", orgId), options);
  }

  /** Changes the name. */
  rename(orgId: string, name: string, options?: CallOptions): Promise<Organization> {
    return this.transport.request("PATCH", pathOf("organizations", orgId), { ...options, body: { name } });
  }

  /** Its keys, tokens, webhooks and memberships end with it. 409 while it has services. */
  delete(orgId: string, options?: CallOptions): Promise<void> {
    return this.transport.request("DELETE", pathOf("organizations", orgId), { ...options, absentIsSuccess: true });
  }
}

/** Several database services that work together, made from a template. */
export class PipelineMethods extends ApiMethods {
  /** Templates, each in its newest version. */
  templates(options?: ListOptions): List<PipelineTemplate> {
    return listOf(this.transport, "/pipelines/templates", "templates", options);
  }

  /** One template, and why it cannot be launched where that is so. */
  template(id: string, options?: CallOptions): Promise<PipelineTemplate> {
    return this.transport.request("GET", pathOf("pipelines", "templates", id), options);
  }

  /** Makes all services of the template. Also needs services:write. */
  create(body: NewPipeline, options?: CallOptions): Promise<Pipeline> {
    return this.transport.request("POST", "/pipelines", { ...options, body });
  }

  /** Pipelines of the organization. */
  list(options?: ListOptions): List<Pipeline> {
    return listOf(this.transport, "/pipelines", "pipelines", options);
  }

  /**
   * One pipeline with its services and how to reach them. Passwords are there for callers with services:secrets alone,
   * and that is in the audit log.
   */
  get(id: string, options?: CallOptions): Promise<PipelineDetail> {
    return this.transport.request("GET", pathOf("pipelines", id), options);
  }

  /** Deletes a pipeline with all its services, in every state. */
  delete(id: string, options?: CallOptions): Promise<Pipeline> {
    return this.transport.request("DELETE", pathOf("pipelines", id), options);
  }
}

/** Resources and what they depend on, described in one document. */
export class ProjectMethods extends ApiMethods {
  /** Projects of the organization, deleted ones for 30 days too. */
  list(options?: ListOptions): List<Project> {
    return listOf(this.transport, "/projects", "projects", options);
  }

  /** One project with the state of its resources. */
  get(name: string, options?: CallOptions): Promise<Project> {
    return this.transport.request("GET", pathOf("projects", name), options);
  }

  /** Deployments of a project, newest first. */
  deployments(name: string, options?: ListOptions): List<Deployment> {
    return listOf(this.transport, pathOf("projects", name, "deployments"), "deployments", options);
  }

  /** One deployment: its plan, and what became of it. */
  deployment(name: string, deploymentId: string, options?: CallOptions): Promise<Deployment> {
    return this.transport.request("GET", pathOf("projects", name, "deployments", deploymentId), options);
  }

  /**
   * Ends a deployment that is in progress: a first one is torn down, of a later one what it made and never ran goes.
   */
  abort(name: string, deploymentId: string, options?: CallOptions): Promise<Deployment> {
    return this.transport.request("POST", pathOf("projects", name, "deployments", deploymentId, "abort"), options);
  }

  /** JSON Schema 2020-12 of descriptors, with the kinds of resources of this installation. */
  schema(options?: CallOptions): Promise<SchemaText> {
    return this.transport.request("GET", "/schemas/project.json", options);
  }

  /** Where resources are not as they were made. */
  drift(name: string, options?: CallOptions): Promise<ProjectDrift> {
    return this.transport.request("GET", pathOf("projects", name, "drift"), options);
  }

  /** Makes an unmanaged resource the organization's own: the project forgets it. */
  release(name: string, logicalName: string, options?: CallOptions): Promise<Project> {
    return this.transport.request("POST", pathOf("projects", name, "resources", logicalName, "release"), options);
  }

  /** Deletes a project with all its resources, unmanaged ones too, each after those that need it. */
  delete(name: string, options?: CallOptions): Promise<Project> {
    return this.transport.request("DELETE", pathOf("projects", name), options);
  }
}

/** Templates of resources, launched at a cost that was accepted. */
export class StackMethods extends ApiMethods {
  /** Templates, each in its newest version. */
  templates(options?: ListOptions): List<StackTemplate> {
    return listOf(this.transport, "/stacks/templates", "templates", options);
  }

  /** One template, and why it cannot be launched where that is so. */
  template(name: string, options?: CallOptions): Promise<StackTemplate> {
    return this.transport.request("GET", pathOf("stacks", "templates", name), options);
  }

  /** Launches a stack at the cost that is accepted. Also needs the scopes of the kinds that it has. */
  create(body: NewStack, options?: CallOptions): Promise<Stack> {
    return this.transport.request("POST", "/stacks", { ...options, body });
  }

  /** Stacks of the organization. */
  list(options?: ListOptions): List<Stack> {
    return listOf(this.transport, "/stacks", "stacks", options);
  }

  /** One stack with the state of its resources. */
  get(id: string, options?: CallOptions): Promise<Stack> {
    return this.transport.request("GET", pathOf("stacks", id), options);
  }

  /** Deletes a stack with all its resources, in every state; each after those that need it. */
  delete(id: string, options?: CallOptions): Promise<Stack> {
    return this.transport.request("DELETE", pathOf("stacks", id), options);
  }

  /** What an upgrade to the newest version of the template would change. Changes nothing. */
  previewUpgrade(id: string, options?: CallOptions): Promise<UpgradePreview> {
    return this.transport.request("POST", pathOf("stacks", id, "upgrade", "preview"), options);
  }

  /** Upgrades of a stack, newest first. */
  migrations(id: string, options?: ListOptions): List<StackMigration> {
    return listOf(this.transport, pathOf("stacks", id, "migrations"), "migrations", options);
  }

  /** One upgrade with its steps. */
  migration(id: string, migrationId: string, options?: CallOptions): Promise<StackMigration> {
    return this.transport.request("GET", pathOf("stacks", id, "migrations", migrationId), options);
  }
}

/** Queries of a service: what they cost, which run now, and the console that runs one. */
export class QueryMethods extends ApiMethods {
  /**
   * The result of a request for statistics: 202 while it runs, then 200 with the members of the statistics, or with the
   * error.
   */
  statistics(serviceId: string, taskId: string, options?: CallOptions): Promise<QueryStatisticsTask> {
    const path = pathOf("managed-services", serviceId, "query-stats");
    return this.transport.request("GET", path, { ...options, query: { task_id: taskId } });
  }

  /** Sessions that run a query or hold a transaction open now, the longest first, without the platform's own. */
  running(serviceId: string, options?: CallOptions): Promise<RunningQueries> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "queries", "running"), options);
  }

  /** Asks the engine to end the query that the session runs now. The session goes on. */
  cancel(serviceId: string, queryRunId: string, options?: CallOptions): Promise<SignalledQuery> {
    const path = pathOf("managed-services", serviceId, "queries", queryRunId, "cancel");
    return this.transport.request("POST", path, options);
  }

  /** Ends the session with its transaction. */
  terminate(serviceId: string, queryRunId: string, options?: CallOptions): Promise<SignalledQuery> {
    const path = pathOf("managed-services", serviceId, "queries", queryRunId, "terminate");
    return this.transport.request("POST", path, options);
  }
}

/** Queues inside a PostgreSQL service, and their messages over HTTP. */
export class QueueMethods extends ApiMethods {
  /**
   * Writes the queue down and answers with it in Pending; it takes messages once it is Active. 409 for a name in use,
   * for the 201st queue of a service, and while the service does not run. 422 for an engine without queues and a
   * database that is not there.
   */
  create(serviceId: string, body: NewQueue, options?: CallOptions): Promise<Queue> {
    return this.transport.request("POST", pathOf("managed-services", serviceId, "queues"), { ...options, body });
  }

  /** By name. */
  list(serviceId: string, options?: ListOptions): List<Queue> {
    return listOf(this.transport, pathOf("managed-services", serviceId, "queues"), "queues", options);
  }

  get(serviceId: string, name: string, options?: CallOptions): Promise<Queue> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "queues", name), options);
  }

  /** Changes settings for messages that are enqueued from then on. */
  update(serviceId: string, name: string, body: QueueChange, options?: CallOptions): Promise<Queue> {
    return this.transport.request("PATCH", pathOf("managed-services", serviceId, "queues", name), { ...options, body });
  }

  /** Ends the queue with its messages, from every state. The same again while it goes is 202 too, then 404. */
  delete(serviceId: string, name: string, options?: CallOptions): Promise<Queue> {
    return this.transport.request("DELETE", pathOf("managed-services", serviceId, "queues", name), options);
  }

  /**
   * Counts the messages exactly; the task's result is `{queue_name, ready_messages, inflight_messages, dead_messages,
   * delayed_messages, oldest_age_seconds, oldest_snapshot}`.
   */
  count(serviceId: string, name: string, options?: CallOptions): Promise<QueueTask> {
    return this.transport.request("POST", pathOf("managed-services", serviceId, "queues", name, "stats"), options);
  }

  /** The result of such a request; 202 until it is over. */
  counts(serviceId: string, name: string, taskId: string, options?: CallOptions): Promise<Task> {
    const path = pathOf("managed-services", serviceId, "queues", name, "stats");
    return this.transport.request("GET", path, { ...options, query: { task_id: taskId } });
  }

  /** Messages whose attempts are used up, by id; each is kept for 14 days. */
  dead(serviceId: string, name: string, options?: ListOptions): List<DeadMessage> {
    return listOf(this.transport, pathOf("managed-services", serviceId, "queues", name, "dead"), "messages", options);
  }

  /** Deletes all dead messages; the task's result is `{messages}`, how many. */
  purgeDead(serviceId: string, name: string, options?: CallOptions): Promise<QueueTask> {
    return this.transport.request("DELETE", pathOf("managed-services", serviceId, "queues", name, "dead"), options);
  }

  /**
   * Makes dead messages ready again, all without `ids`: their ids and payloads stay, their attempts begin anew. The
   * task's result is `{messages}`, how many.
   */
  redrive(serviceId: string, name: string, ids?: readonly number[], options?: CallOptions): Promise<QueueTask> {
    const path = pathOf("managed-services", serviceId, "queues", name, "dead", "redrive");
    return this.transport.request("POST", path, { ...options, body: { ids } });
  }

  /** Deletes all messages that are not dead; the task's result is `{messages}`, how many. */
  purge(serviceId: string, name: string, options?: CallOptions): Promise<QueueTask> {
    return this.transport.request("POST", pathOf("managed-services", serviceId, "queues", name, "purge"), options);
  }
}

/** Managed database services. */
export class ServiceMethods extends ApiMethods {
  /** The services of the organization, oldest first. */
  list(filter?: ServiceFilter, options?: ListOptions): List<ManagedService> {
    return listOf(this.transport, "/managed-services", "services", options, { ...filter });
  }

  /** Makes a service. It answers at once in Pending; the operation tells how far it is. */
  create(body: NewService, options?: CallOptions): Promise<ManagedService> {
    return this.transport.request("POST", "/managed-services", { ...options, body });
  }

  /** One service as it is now, with its operation in progress and its health. */
  get(id: string, options?: CallOptions): Promise<ManagedService> {
    return this.transport.request("GET", pathOf("managed-services", id), options);
  }

  /**
   * Changes some fields at once, and begins an operation for another plan or more storage: the answer is 202 while an
   * operation goes on. The allow-list takes effect within 5 s, on open sessions too.
   */
  update(id: string, body: ServiceChange, options?: CallOptions): Promise<ManagedService> {
    return this.transport.request("PATCH", pathOf("managed-services", id), { ...options, body });
  }

  /**
   * Gives the service another plan. Its engine is restarted once, with the settings of that plan; a single node is away
   * for so long. When a machine cannot have that size, the service keeps its plan, and the operation fails with the
   * reason.
   */
  resize(id: string, planName: string, options?: CallOptions): Promise<ManagedService> {
    const path = pathOf("managed-services", id, "resize");
    return this.transport.request("POST", path, { ...options, body: { plan_name: planName } });
  }

  /**
   * Gives the service more storage, without a restart. The operation is completed when the file system has it. Storage
   * does not shrink.
   */
  expandStorage(id: string, storageSizeGb: number, options?: CallOptions): Promise<ManagedService> {
    const path = pathOf("managed-services", id, "storage", "expand");
    return this.transport.request("POST", path, { ...options, body: { storage_size_gb: storageSizeGb } });
  }

  /**
   * Lets clients write for 15 minutes to a service whose writes are blocked because its disk is full, so that they can
   * delete. Writes are blocked again after that unless there is room. 409 when they are not blocked.
   */
  enableWrites(id: string, options?: CallOptions): Promise<ManagedService> {
    return this.transport.request("POST", pathOf("managed-services", id, "enable-writes"), options);
  }

  /**
   * Upgrades the engine to a newer version with its data: replicas first, one at a time, and the primary after a
   * switchover; a single node is down meanwhile. A PostgreSQL service is down while the data of its primary are
   * upgraded; its replicas copy them then. A harmful upgrade is rolled back. With check_only it reports its findings,
   * and changes nothing.
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

  /** The service's window and its pending updates, each with the time at which it begins by itself. */
  maintenance(serviceId: string, options?: CallOptions): Promise<Maintenance> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "maintenance"), options);
  }

  /** All that a client needs to connect but the password. */
  connection(id: string, options?: CallOptions): Promise<Connection> {
    return this.transport.request("GET", pathOf("managed-services", id, "connection"), options);
  }

  /** The machines that the service runs on. */
  nodes(id: string, options?: ListOptions): List<ServiceNode> {
    return listOf(this.transport, pathOf("managed-services", id, "nodes"), "nodes", options);
  }

  /** How far the operation in progress is. */
  taskSummary(id: string, options?: CallOptions): Promise<TaskSummary> {
    return this.transport.request("GET", pathOf("managed-services", id, "task-summary"), options);
  }
}

/** Health of services: the worst of their checks, and how it changed. */
export class HealthMethods extends ApiMethods {
  /** Health of a service now: the worst of its checks. */
  get(serviceId: string, options?: CallOptions): Promise<Health> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "health"), options);
  }
}

/** Results that are answered later. */
export class Tasks extends ApiMethods {
  /**
   * One task by the id that a 202 handed out, for 24 hours. It needs the scope of the method that handed it out. 404
   * for every other id.
   */
  get(taskId: string, options?: CallOptions): Promise<Task> {
    return this.transport.request("GET", pathOf("tasks", taskId), options);
  }
}

/** Bearer tokens, never more than their maker. */
export class Tokens extends ApiMethods {
  /** The tokens of the organization, without their text. */
  list(options?: ListOptions): List<Token> {
    return listOf(this.transport, "/tokens", "tokens", options);
  }

  /**
   * The token is shown this once. It ends with its maker at the latest, and has no right that its maker lacks.
   * Everybody may make tokens of their own; for keys and tokens to make one needs keys:write.
   */
  create(body: NewToken, options?: CallOptions): Promise<CreatedToken> {
    return this.transport.request("POST", "/tokens", { ...options, body });
  }

  /**
   * Ends the token at once, and the tokens made with it. A person may end tokens of their own, and a token itself;
   * ending others needs keys:write.
   */
  delete(id: string, options?: CallOptions): Promise<void> {
    return this.transport.request("DELETE", pathOf("tokens", id), { ...options, absentIsSuccess: true });
  }
}

/** People, and their passwords. */
export class UserMethods extends ApiMethods {
  /** A person without a password yet: hand them the setup token, which works once. Then add them as a member. */
  create(username: string, options?: CallOptions): Promise<CreatedUser> {
    return this.transport.request("POST", "/users", { ...options, body: { username } });
  }

  /** Sets the password with the one-time token. */
  setUp(token: string, password: string, options?: CallOptions): Promise<void> {
    return this.transport.request("POST", "/users/setup", { ...options, body: { token, password } });
  }

  /**
   * Makes a new setup token for a person who lost the first one or forgot the password. The former password or token is
   * void from now on. Only for people that this organization made and who belong to no other; for all others a platform
   * operator does it.
   */
  reset(userId: string, options?: CallOptions): Promise<CreatedUser> {
    return this.transport.request("POST", pathOf("users", userId, "reset"), options);
  }

  /**
   * Removes a person that this organization made, and frees the name. 422 while they are a member of any organization.
   */
  delete(userId: string, options?: CallOptions): Promise<void> {
    return this.transport.request("DELETE", pathOf("users", userId), { ...options, absentIsSuccess: true });
  }
}

/** Endpoints that get the organization's events as signed requests. */
export class WebhookMethods extends ApiMethods {
  /** The endpoints of the organization, without their secrets. */
  list(options?: ListOptions): List<Webhook> {
    return listOf(this.transport, "/webhooks", "webhooks", options);
  }

  /** Only this answer shows the signing secret. */
  create(body: NewWebhook, options?: CallOptions): Promise<CreatedWebhook> {
    return this.transport.request("POST", "/webhooks", { ...options, body });
  }

  /** One endpoint, without its secret. */
  get(id: string, options?: CallOptions): Promise<Webhook> {
    return this.transport.request("GET", pathOf("webhooks", id), options);
  }

  /** Setting active to true also ends a switch-off by the platform. */
  update(id: string, body: WebhookChange, options?: CallOptions): Promise<Webhook> {
    return this.transport.request("PATCH", pathOf("webhooks", id), { ...options, body });
  }

  /** No further attempt begins; an attempt under way may still end. */
  delete(id: string, options?: CallOptions): Promise<void> {
    return this.transport.request("DELETE", pathOf("webhooks", id), { ...options, absentIsSuccess: true });
  }

  /**
   * Makes a new signing secret. For the overlap both sign: the old one in X-Platform-Signature, the new one in
   * X-Platform-Signature-Next, and both in webhook-signature.
   */
  rotateSecret(id: string, overlapHours?: number, options?: CallOptions): Promise<RotatedSecret> {
    const path = pathOf("webhooks", id, "rotate-secret");
    return this.transport.request("POST", path, { ...options, body: { overlap_hours: overlapHours } });
  }
}
