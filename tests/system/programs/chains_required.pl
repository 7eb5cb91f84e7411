# SPDX-License-Identifier: Apache-2.0
# What chains.pl loads.
Leaf::hotLeaf($Chains::Deadline);
1;
