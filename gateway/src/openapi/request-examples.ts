/** A body that each method takes which has one. A test reads them with the method's own reader. */
export const requestExamples: Readonly<Record<string, object>> = {
  "holdfast.v1.ManagedServiceService.CreateManagedService": {
    name: "orders",
    database_type: "postgresql",
    plan_name: "tier-1",
    storage_size_gb: 1,
    allowed_cidrs: ["127.0.0.0/8"],
    tags: { team: "shop" },
  },
  "holdfast.v1.ManagedServiceService.UpdateManagedService": { ttl_hours: 24, tags: { team: "shop", stage: "test" } },
  "holdfast.v1.MaintenanceService.ApplyMaintenance": { update_ids: ["trixie-3f2a9c0d51e78b64"] },
  "holdfast.v1.DatabaseUserService.CreateDatabaseUser": { username: "reports", role: "readonly" },
  "holdfast.v1.DatabaseService.CreateDatabase": { name: "archive" },
  "holdfast.v1.ConfigurationService.UpdateConfiguration": {
    parameters: { work_mem: "8MB", log_min_duration_statement: null },
  },
  "holdfast.v1.WebhookService.CreateWebhook": {
    url: "https://example.com/hooks/holdfast",
    events: ["service.running", "service.error"],
  },
  "holdfast.v1.WebhookService.UpdateWebhook": { active: true },
  "holdfast.v1.WebhookService.RotateSecret": { overlap_hours: 24 },
  "holdfast.v1.OrganizationService.CreateOrganization": { name: "Shop" },
  "holdfast.v1.OrganizationService.UpdateOrganization": { name: "Shop and depot" },
  "holdfast.v1.OrganizationService.AddMember": { user_id: "anna", role: "developer" },
  "holdfast.v1.OrganizationService.UpdateMember": { role: "viewer" },
  "holdfast.v1.UserService.CreateUser": { username: "anna" },
  "holdfast.v1.UserService.SetUpUser": {
    token: "Qm4x8vP0sLqT3dYh6kRb2WfZc5mJg7uAe9oXiHnQ",
    password: "four words that rhyme",
  },
  "holdfast.v1.UserService.ChangePassword": {
    current_password: "four words that rhyme",
    new_password: "five other words that do not",
  },
  "holdfast.v1.ApiKeyService.CreateApiKey": { name: "dashboard", scopes: ["services:read"] },
  "holdfast.v1.ApiKeyService.RotateApiKey": { overlap_hours: 24 },
  "holdfast.v1.TokenService.CreateToken": { scopes: ["services:read"], ttl_seconds: 3600 },
};
