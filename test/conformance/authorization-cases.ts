/** What exists in the organization that others must not reach. */
export interface Existing {
  readonly serviceId: string;
  readonly operationId: string;
  readonly machineId: string;
  readonly controllerId: string;
  readonly organizationId: string;
  readonly keyId: string;
  readonly tokenId: string;
  readonly webhookId: string;
}

/** How one method is tried by those who may not call it. */
export interface AuthorizationCase {
  /** A request that would work for its owner, in the API's own JSON. */
  readonly request: (existing: Existing) => Record<string, unknown>;
  /** What an owner of another organization gets: no such object, or what is his own, or the scope is not his to have. */
  readonly stranger: "not found" | "own" | "no scope";
}

const own = (request: AuthorizationCase["request"]): AuthorizationCase => ({ request, stranger: "own" });
const object = (request: AuthorizationCase["request"]): AuthorizationCase => ({ request, stranger: "not found" });
const platform = (request: AuthorizationCase["request"]): AuthorizationCase => ({ request, stranger: "no scope" });

const byId = object(({ serviceId }) => ({ id: serviceId }));
const ofService = object(({ serviceId }) => ({ service_id: serviceId }));
const user = object(({ serviceId }) => ({ service_id: serviceId, username: "app_user" }));
const webhook = object(({ webhookId }) => ({ id: webhookId }));
const ofOrganization = object(({ organizationId }) => ({ org_id: organizationId }));
const nothing = platform(() => ({}));

/** Every method that is served, by its full name. A method without a case fails the walk. */
// biome-ignore format: a table, aligned so that it reads as one
export const authorizationCases: Readonly<Record<string, AuthorizationCase>> = {
  "holdfast.v1.CatalogService.GetCatalog":                      own(() => ({})),
  "holdfast.v1.ConfigurationService.GetConfiguration":          ofService,
  "holdfast.v1.ConfigurationService.UpdateConfiguration":       object(({ serviceId }) => ({ service_id: serviceId, parameters: { work_mem: "8MB" } })),
  "holdfast.v1.DatabaseService.ListDatabases":                  ofService,
  "holdfast.v1.DatabaseService.CreateDatabase":                 object(({ serviceId }) => ({ service_id: serviceId, name: "stolen" })),
  "holdfast.v1.DatabaseService.DeleteDatabase":                 object(({ serviceId }) => ({ service_id: serviceId, name: "defaultdb" })),
  "holdfast.v1.DatabaseUserService.ListDatabaseUsers":          ofService,
  "holdfast.v1.DatabaseUserService.CreateDatabaseUser":         object(({ serviceId }) => ({ service_id: serviceId, username: "thief", role: "admin" })),
  "holdfast.v1.DatabaseUserService.GetDatabaseUser":            user,
  "holdfast.v1.DatabaseUserService.DeleteDatabaseUser":         user,
  "holdfast.v1.DatabaseUserService.RevealPassword":             user,
  "holdfast.v1.DatabaseUserService.ResetPassword":              user,
  "holdfast.v1.ManagedServiceService.CreateManagedService":     own(() => ({ name: "new", database_type: "postgresql", plan_name: "tier-1", storage_size_gb: 1 })),
  "holdfast.v1.ManagedServiceService.ListManagedServices":      own(() => ({})),
  "holdfast.v1.ManagedServiceService.GetManagedService":        byId,
  "holdfast.v1.ManagedServiceService.UpdateManagedService":     object(({ serviceId }) => ({ id: serviceId, name: "stolen" })),
  "holdfast.v1.ManagedServiceService.StartManagedService":      byId,
  "holdfast.v1.ManagedServiceService.StopManagedService":       byId,
  "holdfast.v1.ManagedServiceService.RestartManagedService":    byId,
  "holdfast.v1.ManagedServiceService.DeleteManagedService":     byId,
  "holdfast.v1.ManagedServiceService.GetConnection":            byId,
  "holdfast.v1.ManagedServiceService.ListNodes":                byId,
  "holdfast.v1.ManagedServiceService.ListLogs":                 byId,
  "holdfast.v1.ManagedServiceService.GetTaskSummary":           byId,
  "holdfast.v1.MaintenanceService.GetMaintenance":             ofService,
  "holdfast.v1.MaintenanceService.ApplyMaintenance":           ofService,
  "holdfast.v1.MetricService.GetMetrics":                       object(({ serviceId }) => ({ service_id: serviceId, metric: ["cpu"] })),
  "holdfast.v1.EventService.ListEvents":                        own(() => ({})),
  "holdfast.v1.EventService.ListServiceEvents":                 ofService,
  "holdfast.v1.WebhookService.CreateWebhook":                   own(() => ({ url: "https://192.0.2.1/" })),
  "holdfast.v1.WebhookService.ListWebhooks":                    own(() => ({})),
  "holdfast.v1.WebhookService.GetWebhook":                      webhook,
  "holdfast.v1.WebhookService.UpdateWebhook":                   object(({ webhookId }) => ({ id: webhookId, active: false })),
  "holdfast.v1.WebhookService.DeleteWebhook":                   webhook,
  "holdfast.v1.WebhookService.TestWebhook":                     webhook,
  "holdfast.v1.WebhookService.RotateSecret":                    webhook,
  "holdfast.v1.WebhookService.ListDeliveries":                  webhook,
  "holdfast.v1.WebhookService.Redeliver":                       object(({ webhookId }) => ({ id: webhookId, delivery_id: webhookId })),
  "holdfast.v1.OperationService.GetOperation":                  object(({ operationId }) => ({ id: operationId })),
  "holdfast.v1.OperationService.ListOperations":                ofService,
  "holdfast.v1.ApiKeyService.CreateApiKey":                    own(() => ({ name: "new", scopes: ["keys:write"] })),
  "holdfast.v1.ApiKeyService.ListApiKeys":                     own(() => ({})),
  "holdfast.v1.ApiKeyService.DeleteApiKey":                    object(({ keyId }) => ({ id: keyId })),
  "holdfast.v1.ApiKeyService.RotateApiKey":                    object(({ keyId }) => ({ id: keyId })),
  "holdfast.v1.TokenService.CreateToken":                      own(() => ({ scopes: ["keys:write"], ttl_seconds: 60 })),
  "holdfast.v1.TokenService.ListTokens":                       own(() => ({})),
  "holdfast.v1.TokenService.DeleteToken":                      object(({ tokenId }) => ({ id: tokenId })),
  "holdfast.v1.AuditService.ListAuditLog":                     own(() => ({})),
  "holdfast.v1.OrganizationService.CreateOrganization":        platform(() => ({ name: "stolen" })),
  "holdfast.v1.OrganizationService.ListOrganizations":         own(() => ({})),
  "holdfast.v1.OrganizationService.GetOrganization":           ofOrganization,
  "holdfast.v1.OrganizationService.UpdateOrganization":        object(({ organizationId }) => ({ org_id: organizationId, name: "stolen" })),
  "holdfast.v1.OrganizationService.DeleteOrganization":        ofOrganization,
  "holdfast.v1.OrganizationService.ListMembers":               ofOrganization,
  "holdfast.v1.OrganizationService.AddMember":                 object(({ organizationId }) => ({ org_id: organizationId, user_id: "admin", role: "viewer" })),
  "holdfast.v1.OrganizationService.UpdateMember":              object(({ organizationId }) => ({ org_id: organizationId, user_id: "admin", role: "viewer" })),
  "holdfast.v1.OrganizationService.RemoveMember":              object(({ organizationId }) => ({ org_id: organizationId, user_id: "admin" })),
  "holdfast.v1.UserService.CreateUser":                        own(() => ({ username: "new" })),
  "holdfast.v1.UserService.ResetUser":                         object(() => ({ user_id: "admin" })),
  "holdfast.v1.UserService.SetUpUser":                         own(() => ({ token: "hfu_none", password: "a guessed password" })),
  "holdfast.v1.UserService.ChangePassword":                    platform(() => ({ current_password: "guess", new_password: "a guessed password" })),
  "holdfast.v1.UserService.GetMe":                             own(() => ({})),
  "holdfast.admin.v1.FleetService.ListMachines":                nothing,
  "holdfast.admin.v1.FleetService.ListTasks":                   nothing,
  "holdfast.admin.v1.FleetService.ListSessions":                nothing,
  "holdfast.admin.v1.FleetService.ListTerms":                   nothing,
  "holdfast.admin.v1.FleetService.SweepOrphans":                nothing,
  "holdfast.admin.v1.FleetService.ProbeTransfer":               platform(({ machineId }) => ({ machine_id: machineId, size_bytes: "10" })),
  "holdfast.admin.v1.ControlService.ListControllers":           nothing,
  "holdfast.admin.v1.ControlService.DrainController":           platform(({ controllerId }) => ({ controller_id: controllerId })),
  "holdfast.admin.v1.ControlService.BackupControlPlane":        nothing,
  "holdfast.admin.v1.ControlService.ListHolds":                 nothing,
  "holdfast.admin.v1.ControlService.ReleaseHold":               platform(() => ({ kind: "clock" })),
  "holdfast.admin.v1.HostService.ListHosts":                    nothing,
  "holdfast.admin.v1.HostService.GetHost":                      platform(() => ({ host_id: "local" })),
  "holdfast.admin.v1.HostService.AddHost":                      platform(() => ({ host_id: "thief", zone: "local", address: "192.0.2.1:1" })),
  "holdfast.admin.v1.HostService.CordonHost":                   platform(() => ({ host_id: "local" })),
  "holdfast.admin.v1.HostService.UncordonHost":                 platform(() => ({ host_id: "local" })),
  "holdfast.admin.v1.HostService.DrainHost":                    platform(() => ({ host_id: "local", stop_single_nodes: true })),
  "holdfast.admin.v1.HostService.RemoveHost":                   platform(() => ({ host_id: "local" })),
  "holdfast.admin.v1.MaintenanceService.ListImages":           nothing,
  "holdfast.admin.v1.MaintenanceService.MarkImageUrgent":      platform(() => ({ image: "trixie-1", notice_hours: 1, reason: "stolen" })),
  "holdfast.admin.v1.MaintenanceService.UnmarkImageUrgent":    platform(() => ({ image: "trixie-1" })),
  "holdfast.admin.v1.MaintenanceService.ListMaintenance":      nothing,
  "holdfast.admin.v1.OrganizationService.CreateOrganization":   platform(() => ({ name: "stolen" })),
  "holdfast.admin.v1.OrganizationService.ListOrganizations":    nothing,
  "holdfast.admin.v1.OrganizationService.UpdateQuota":          platform(({ organizationId }) => ({ organization_id: organizationId, services: 1 })),
  "holdfast.admin.v1.OrganizationService.CreateApiKey":         platform(({ organizationId }) => ({ organization_id: organizationId, name: "stolen" })),
  "holdfast.admin.v1.OrganizationService.ListApiKeys":          nothing,
  "holdfast.admin.v1.OrganizationService.RevokeApiKey":         platform(({ keyId }) => ({ id: keyId })),
  "holdfast.admin.v1.OrganizationService.ListAuditEntries":     nothing,
  "holdfast.admin.v1.AuthorityService.GetAuthority":            nothing,
  "holdfast.admin.v1.AuthorityService.RotateAuthority":         nothing,
  "holdfast.admin.v1.AuthorityService.CancelAuthorityRotation": nothing,
  "holdfast.admin.v1.AuthorityService.ForceAuthorityRotation":  nothing,
  "holdfast.admin.v1.AgentRolloutService.GetAgentRollout":     nothing,
  "holdfast.admin.v1.AgentRolloutService.ListAgents":          nothing,
  "holdfast.admin.v1.AgentRolloutService.PauseAgentRollout":   nothing,
  "holdfast.admin.v1.AgentRolloutService.ResumeAgentRollout":  nothing,
  "holdfast.admin.v1.AgentRolloutService.RetryAgentUpgrade":   platform(({ machineId }) => ({ machine_id: machineId })),
  "holdfast.admin.v1.AgentRolloutService.OfferAgentRelease":   nothing,
  "holdfast.admin.v1.OperatorService.CreateOperator":           platform(() => ({ username: "thief" })),
  "holdfast.admin.v1.OperatorService.ListOperators":            nothing,
  "holdfast.admin.v1.OperatorService.RotateOperator":           platform(() => ({ username: "admin" })),
  "holdfast.admin.v1.OperatorService.RevokeOperator":           platform(() => ({ username: "admin" })),
  "holdfast.admin.v1.OperatorService.ResetUser":                platform(() => ({ user_id: "admin" })),
};
