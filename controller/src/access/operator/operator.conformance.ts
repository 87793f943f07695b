import { OperatorService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { casesOf, type Contract, ofPlatform, platform } from "@holdfast/testing/contract/contract.ts";

export default {
  authorization: [
    casesOf(OperatorService, {
      createOperator: platform(() => ({ username: "thief" })),
      listOperators: ofPlatform,
      rotateOperator: platform(() => ({ username: "admin" })),
      revokeOperator: platform(() => ({ username: "admin" })),
      resetUser: platform(() => ({ user_id: "admin" })),
    }),
  ],
  nameScopes: {
    "operator-api.ts": "global: the same names of users, which operators see",
  },
} satisfies Contract;
