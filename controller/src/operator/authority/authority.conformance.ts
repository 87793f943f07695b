import { AuthorityService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { casesOf, type Contract, ofPlatform } from "@holdfast/testing/contract/contract.ts";

export default {
  authorization: [
    casesOf(AuthorityService, {
      getAuthority: ofPlatform,
      rotateAuthority: ofPlatform,
      cancelAuthorityRotation: ofPlatform,
      forceAuthorityRotation: ofPlatform,
    }),
  ],
  listBounds: {
    "holdfast.admin.v1.Authority.behind": "100, and the total number",
    "holdfast.admin.v1.Authority.trusted": "two during a rotation",
  },
} satisfies Contract;
