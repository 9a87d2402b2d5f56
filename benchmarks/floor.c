/* The floor: one gradient of the hierarchical log density of 18 tasks, 50 points each, 763 unknowns, in plain C.

   One core, points last, padded to 64, every loop a vector loop. Usage: floor [repetitions]; prints microseconds.
   cc -O3 -march=native -ffast-math floor.c -o floor -lm */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TASKS = 18, POINTS = 50, P = 64, WEIGHTS = 40 };
static float x[TASKS][2][P], y[TASKS][P], seen[P];
static float mean[WEIGHTS], offset[TASKS][WEIGHTS], log_sd[3];
static float d_mean[WEIGHTS], d_offset[TASKS][WEIGHTS], d_log_sd[3];

static int layer(int w) { return w < 10 ? 0 : w < 35 ? 1 : 2; }

static float gradient(void) {
  float value = 0, sd[3];
  for (int l = 0; l < 3; l++) {
    sd[l] = expf(log_sd[l]);
    value += log_sd[l] - 0.5f * sd[l] * sd[l];
    d_log_sd[l] = 1 - sd[l] * sd[l];
  }
  for (int w = 0; w < WEIGHTS; w++) {
    d_mean[w] = -mean[w];
    value -= 0.5f * mean[w] * mean[w];
  }
  for (int t = 0; t < TASKS; t++) {
    float w[WEIGHTS], d[WEIGHTS], h1[5][P], h2[5][P], d1[5][P], d2[5][P], g[P];
    for (int k = 0; k < WEIGHTS; k++) w[k] = mean[k] + sd[layer(k)] * offset[t][k];
    const float *w1 = w, *w2 = w + 10, *w3 = w + 35;
    for (int j = 0; j < 5; j++)
      for (int p = 0; p < P; p++) h1[j][p] = 1 - 2 / (1 + expf(2 * (w1[j] * x[t][0][p] + w1[5 + j] * x[t][1][p])));
    for (int j = 0; j < 5; j++)
      for (int p = 0; p < P; p++) {
        float a = 0;
        for (int i = 0; i < 5; i++) a += w2[5 * i + j] * h1[i][p];
        h2[j][p] = 1 - 2 / (1 + expf(2 * a));
      }
    for (int p = 0; p < P; p++) {
      float f = 0;
      for (int j = 0; j < 5; j++) f += w3[j] * h2[j][p];
      float e = expf(-fabsf(f)), s = f > 0 ? 1 / (1 + e) : e / (1 + e);
      g[p] = seen[p] * (y[t][p] - s);
      value += seen[p] * (y[t][p] * f - fmaxf(f, 0) - log1pf(e));
    }
    for (int j = 0; j < 5; j++) {
      float a = 0;
      for (int p = 0; p < P; p++) {
        a += g[p] * h2[j][p];
        d2[j][p] = g[p] * w3[j] * (1 - h2[j][p] * h2[j][p]);
      }
      d[35 + j] = a;
    }
    for (int i = 0; i < 5; i++) {
      for (int j = 0; j < 5; j++) {
        float a = 0;
        for (int p = 0; p < P; p++) a += h1[i][p] * d2[j][p];
        d[10 + 5 * i + j] = a;
      }
      for (int p = 0; p < P; p++) {
        float a = 0;
        for (int j = 0; j < 5; j++) a += w2[5 * i + j] * d2[j][p];
        d1[i][p] = a * (1 - h1[i][p] * h1[i][p]);
      }
    }
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 5; j++) {
        float a = 0;
        for (int p = 0; p < P; p++) a += x[t][i][p] * d1[j][p];
        d[5 * i + j] = a;
      }
    for (int k = 0; k < WEIGHTS; k++) {
      int l = layer(k);
      d_mean[k] += d[k];
      d_offset[t][k] = sd[l] * d[k] - offset[t][k];
      d_log_sd[l] += sd[l] * d[k] * offset[t][k];
      value -= 0.5f * offset[t][k] * offset[t][k];
    }
  }
  return value;
}

static float uniform(void) { return 2.0f * rand() / RAND_MAX - 1; }

int main(int argc, char **argv) {
  int repetitions = argc > 1 ? atoi(argv[1]) : 100000;
  for (int t = 0; t < TASKS; t++) {
    for (int p = 0; p < POINTS; p++) x[t][0][p] = uniform(), x[t][1][p] = uniform(), y[t][p] = uniform() > 0;
    for (int k = 0; k < WEIGHTS; k++) offset[t][k] = uniform();
  }
  for (int p = 0; p < POINTS; p++) seen[p] = 1;
  for (int k = 0; k < WEIGHTS; k++) mean[k] = uniform();
  struct timespec begin, end;
  float total = 0;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int r = 0; r < repetitions; r++) {
    total += gradient();
    mean[r % WEIGHTS] += 1e-6f * d_mean[r % WEIGHTS]; /* so that no repetition can be left out */
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  double seconds = (end.tv_sec - begin.tv_sec) + 1e-9 * (end.tv_nsec - begin.tv_nsec);
  printf("%.2f %g\n", 1e6 * seconds / repetitions, total);
  return 0;
}
