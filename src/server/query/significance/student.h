/* SPDX-License-Identifier: Apache-2.0 */
/*
 * student - Student's t distribution, and the two functions of the gamma family that variances
 * need. Pure functions; accurate to about 1e-9 relative, which is more than any profile is.
 */
#ifndef FIRN_SERVER_QUERY_SIGNIFICANCE_STUDENT_H
#define FIRN_SERVER_QUERY_SIGNIFICANCE_STUDENT_H

/* The chance of |t| or more, with that many degrees of freedom (> 0; infinite: the normal one). */
double student_two_sided(double t, double freedom);

/* The t that is exceeded, in either direction, with the chance p (0 < p < 1). */
double student_bound(double p, double freedom);

/* Derivatives of log gamma, x > 0. */
double student_digamma(double x);
double student_trigamma(double x);
/* The x with student_trigamma(x) == y, y > 0. */
double student_trigamma_inverse(double y);

#endif
