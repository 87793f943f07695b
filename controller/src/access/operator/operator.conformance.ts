import { OperatorService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { casesOf, type Contract, ofPlatform, platformScoped } from "@holdfast/testing/contract/contract.ts";

export default {
  authorization: [
    casesOf(OperatorService, {
      createOperator: platformScoped(() => ({ username: "thief" })),
      listOperators: ofPlatform,
      rotateOperator: platformScoped(() => ({ username: "admin" })),
      revokeOperator: platformScoped(() => ({ username: "admin" })),
      resetUser: platformScoped(() => ({ user_id: "admin" })),
    }),
  ],
  nameScopes: {
    "operator-api.ts": "global: the same names of users, which operators see",
  },
} satisfies Contract;
