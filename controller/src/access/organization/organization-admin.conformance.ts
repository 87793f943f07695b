import { OrganizationService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { casesOf, type Contract, ofPlatform, platformScoped } from "@holdfast/testing/contract/contract.ts";

export default {
  authorization: [
    casesOf(OrganizationService, {
      createOrganization: platformScoped(() => ({ name: "stolen" })),
      listOrganizations: ofPlatform,
      updateQuota: platformScoped(({ organizationId }) => ({ organization_id: organizationId, services: 1 })),
      createApiKey: platformScoped(({ organizationId }) => ({ organization_id: organizationId, name: "stolen" })),
      listApiKeys: ofPlatform,
      revokeApiKey: platformScoped(({ keyId }) => ({ id: keyId })),
      listAuditEntries: ofPlatform,
    }),
  ],
  listBounds: {
    "holdfast.admin.v1.Organization.quotas": "one a declared quota",
    "holdfast.admin.v1.ApiKey.scopes": "the members of the request",
  },
  nameScopes: {
    "organization-admin-api.ts": "global: among the organizations that operators make, which they see",
  },
} satisfies Contract;
