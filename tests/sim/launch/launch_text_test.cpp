#include <gtest/gtest.h>

#include "sim/launch/export.h"

namespace orrery {
namespace {

const Exported kOptions{{{"a.b", "8", ""}, {"a.c.d", "true", ""}, {"a.e", "x", ""}}, {}};

TEST(LaunchText, Syntaxes) {
  EXPECT_EQ(launch_text(kOptions, Syntax::yaml, {"head"}), "# head\na:\n  b: 8\n  c:\n    d: true\n  e: \"x\"\n");
  EXPECT_EQ(launch_text({{{"a.b", "8", ""}, {"c.d", "x", ""}}, {}}, Syntax::toml, {"head"}),
            "# head\n[a]\nb = 8\n\n[c]\nd = \"x\"\n");
  EXPECT_EQ(launch_text({{{"a.b", "8", ""}}, {}}, Syntax::json, {"head"}), "{\n  \"a\": {\n    \"b\": 8\n  }\n}\n");
  EXPECT_EQ(launch_text({{{"nnodes", "2", ""}, {"a_b", "8", ""}, {"c_d", "true", ""}, {"off", "false", ""}}, {}},
                        Syntax::shell),
            "#!/bin/bash\ntorchrun --nnodes 2 pretrain_gpt.py \\\n  --a-b 8 \\\n  --c-d\n");
}

}  // namespace
}  // namespace orrery
