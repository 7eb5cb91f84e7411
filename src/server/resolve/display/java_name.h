/* SPDX-License-Identifier: Apache-2.0 */
/*
 * java_name - methods of the JVM (Java, Kotlin, Scala) as their sources write them. Runtimes and
 * profilers write them in the class file's form:
 *
 *     Lcom/shop/Cart;::add(Ljava/lang/String;[I)Z    com.shop.Cart.add(String, int[])
 *     com/shop/Cart.$plus$eq                         com.shop.Cart.+=
 *
 * Source: The Java Virtual Machine Specification 4.2 (names) and 4.3 (descriptors); for operators
 * scala.reflect.NameTransformer.
 */
#ifndef FIRN_SERVER_RESOLVE_DISPLAY_JAVA_NAME_H
#define FIRN_SERVER_RESOLVE_DISPLAY_JAVA_NAME_H

#include "base/strbuf.h"

#define JAVA_NAME_BYTES_MAX ((size_t)16 * 1024)

/*
 * Appends the readable name, with the types of the parameters when `with_parameters`. False, and
 * nothing is appended, when `name` has not that form.
 */
bool java_name_read(struct slice name, bool with_parameters, struct strbuf *out);

#endif
