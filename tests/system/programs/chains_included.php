<?php
# SPDX-License-Identifier: Apache-2.0
# What chains.php includes, which has set $deadline.
return (new \Chains\Leaf)->hotLeaf($deadline);
