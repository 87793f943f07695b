import { OrganizationService } from "@holdfast/proto/holdfast/v1/organization_pb.ts";
import { casesOf, type Contract, objectScoped, ofOrganization } from "@holdfast/testing/contract/contract.ts";
import { page, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

export default {
  authorization: [
    casesOf(OrganizationService, {
      listMembers: ofOrganization,
      addMember: objectScoped(({ organizationId }) => ({ org_id: organizationId, user_id: "admin", role: "viewer" })),
      updateMember: objectScoped(({ organizationId }) => ({
        org_id: organizationId,
        user_id: "admin",
        role: "viewer",
      })),
      removeMember: objectScoped(({ organizationId }) => ({ org_id: organizationId, user_id: "admin" })),
    }),
  ],
  sdk: [
    sdkCalls(OrganizationService, {
      listMembers: (c) => c.members.list("i", page),
      addMember: (c) => c.members.add("i", "u", "viewer"),
      updateMember: (c) => c.members.update("i", "u", "viewer"),
      removeMember: (c) => c.members.remove("i", "u"),
    }),
  ],
  nameScopes: {
    "member-handlers.ts": "organization: its members",
  },
} satisfies Contract;
