import { OrganizationService } from "@holdfast/proto/holdfast/v1/organization_pb.ts";
import {
  casesOf,
  type Contract,
  objectScoped,
  ofCaller,
  ofOrganization,
  platformScoped,
} from "@holdfast/testing/contract/contract.ts";
import { page, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

export default {
  authorization: [
    casesOf(OrganizationService, {
      createOrganization: platformScoped(() => ({ name: "stolen" })),
      listOrganizations: ofCaller,
      getOrganization: ofOrganization,
      updateOrganization: objectScoped(({ organizationId }) => ({ org_id: organizationId, name: "stolen" })),
      deleteOrganization: ofOrganization,
    }),
  ],
  sdk: [
    sdkCalls(OrganizationService, {
      createOrganization: (c) => c.organizations.create("n"),
      listOrganizations: (c) => c.organizations.list(page),
      getOrganization: (c) => c.organizations.get("i"),
      updateOrganization: (c) => c.organizations.rename("i", "n"),
      deleteOrganization: (c) => c.organizations.delete("i"),
    }),
  ],
  listBounds: {
    "holdfast.v1.Organization.quotas": "one a declared quota",
  },
  kindBounds: {
    organization: "20 a user, and operators",
  },
  nameScopes: {
    "organization-api.ts": "global: the same; a user's own creations claim no name",
    "organization.ts": "global: the same",
  },
} satisfies Contract;
