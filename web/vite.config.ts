/// <reference types="vitest/config" />
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: 'dist',
    // For `scripts/budget.mjs`, which removes it.
    manifest: true,
    // Everything is a file of its own: the gateway's content security policy allows no inline code.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1024,
    rolldownOptions: {
      output: {
        // All of the first load is wanted at once: in one file it is smaller than in a hundred.
        codeSplitting: {
          groups: [{ name: 'first', tags: ['$initial'], test: /node_modules|\/src\/(?!main\.tsx)/ }],
        },
      },
    },
  },
  server: {
    proxy: {
      '/api': {
        target: process.env.BERTH_URL ?? 'http://localhost:8080',
        ws: true,
        // The gateway refuses unsafe requests from another origin; to it the development server must look like itself.
        configure: (proxy) => {
          const target = process.env.BERTH_URL ?? 'http://localhost:8080'
          proxy.on('proxyReq', (request) => request.setHeader('origin', target))
          proxy.on('proxyReqWs', (request) => request.setHeader('origin', target))
        },
        changeOrigin: true,
      },
    },
  },
  test: {
    include: ['src/**/*.test.{ts,tsx}'],
    setupFiles: ['src/testing/setup.ts'],
    restoreMocks: true,
    // A busy machine is no fault of what is tested.
    testTimeout: 60_000,
  },
})
